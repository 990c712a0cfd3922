"""The topics of a KRaft snapshot, for a cluster that is down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.control_records import ControlRecord
from tieredctl.formats.kraft_log import KraftLogRecord
from tieredctl.formats.kraft_records import KraftRecordType
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from tieredctl.model.ids import uuid_text
from tieredctl.ops.documents import Document

_PIECE_BYTES = 1 << 20
_OF_TOPICS = (KraftRecordType.TOPIC, KraftRecordType.REMOVE_TOPIC)


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """All topics that a cluster had at one moment."""

    file: Path
    topic_ids: frozenset[str]
    as_of_ms: int
    """When the last record in the snapshot was written, by the controller's clock."""
    cluster_id: str | None
    """From the `meta.properties` of the log directory that holds the snapshot, if one does."""

    def describe(self) -> Document:
        return {
            "kind": "kraft-snapshot",
            "kraftSnapshot": str(self.file),
            "clusterId": self.cluster_id,
            "lastContainedLogTimestamp": self.as_of_ms,
            "topics": len(self.topic_ids),
        }


def read_topic_snapshot(file: Path) -> TopicSnapshot:
    """Raises TieredctlError where the file cannot be read in full or is not a snapshot: half of one would make
    orphans."""
    try:
        if file.exists() and not file.is_file():
            raise TieredctlError(ErrorCode.UNREADABLE, f"{file} cannot be read: it is not a regular file.", hint="")
        with file.open("rb") as opened:
            records = read_kraft_snapshot(iter(lambda: opened.read(_PIECE_BYTES), b""), file.stat().st_size)
            header = next(records)
            topic_ids = _topic_ids(records)
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {file}.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{file} may not be read.") from None
    except OSError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{file} cannot be read: {error.strerror}.") from None
    except DecodeError as error:
        message = f"{file} cannot be read as a KRaft snapshot: {error.message}."
        hint = "Give the latest complete `<offset>-<epoch>.checkpoint` from __cluster_metadata-0."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=hint) from None
    fields = header.content.fields
    assert fields is not None  # the reader ensures that this is the header
    return TopicSnapshot(file, topic_ids, fields["LastContainedLogTimestamp"], _cluster_id(file))


def _topic_ids(records: Iterator[KraftLogRecord]) -> frozenset[str]:
    topic_ids: set[str] = set()
    for record in records:
        content = record.content
        if isinstance(content, ControlRecord) or content.api_key not in _OF_TOPICS:
            continue
        if content.fields is None:
            raise DecodeError(f"record of a topic in version {content.version}", record.batch_position)
        change = topic_ids.add if content.api_key == KraftRecordType.TOPIC else topic_ids.discard
        change(uuid_text(content.fields["TopicId"]))
    return frozenset(topic_ids)


def _cluster_id(file: Path) -> str | None:
    with suppress(OSError, DecodeError):
        return read_meta_properties((file.resolve().parent.parent / META_PROPERTIES_FILE).read_bytes()).cluster_id
    return None

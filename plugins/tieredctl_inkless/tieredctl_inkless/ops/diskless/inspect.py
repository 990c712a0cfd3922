"""An object as its record batches: by walking it, and by the control plane's coordinates where it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.compression import Codec
from tieredctl.formats.record_batches import BATCH_HEADER, BatchHeader
from tieredctl.formats.windows import Ints
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ports.object_store import ObjectStore
from tieredctl_inkless.diskless.control_plane import ControlPlane, FileState
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, batch_rows
from tieredctl_inkless.ops.diskless.doubt import doubt_about_object, doubt_finding
from tieredctl_inkless.ops.diskless.finding_places import object_finding
from tieredctl_inkless.ops.diskless.object_check import check_batches, spans_of
from tieredctl_inkless.ops.diskless.walked_object import WalkedObject, walk

_NO_PARTITION: Document = dict.fromkeys(("topic", "topicId", "partition", "batchId", "baseOffset", "lastOffset"))
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


@dataclass(frozen=True, slots=True)
class InspectedObject:
    """An object, walked."""

    key: str
    walked: WalkedObject
    coordinates: Coordinates | None
    """None where the control plane was not asked, or has no such file."""
    findings: Sequence[Finding]

    def documents(self) -> Iterator[Document]:
        """A document for each sound record batch, by position."""
        owners = [_NO_PARTITION] * len(self.walked.positions)
        if self.coordinates is not None:
            owners = self.coordinates.owners(self.walked)
        positions, sizes = self.walked.positions.tolist(), self.walked.sizes.tolist()
        for position, size, header, owner in zip(positions, sizes, self.walked.headers, owners, strict=True):
            yield {"position": position, "size": size, **owner, **_header_document(_values(header))}

    def summary(self) -> Document:
        walked, coordinates = self.walked, self.coordinates
        return {
            "key": self.key,
            "size": walked.size,
            "batches": len(walked.positions),
            "records": walked.records,
            "damagedBytes": sum(damage.end - damage.position for damage in walked.damages),
            "referencedBytes": None if coordinates is None else int(coordinates.rows.sizes.sum()),
            "file": None if coordinates is None else file_document(coordinates.file),
        }


@dataclass(frozen=True, slots=True)
class Coordinates:
    """What a control plane says of one object."""

    file: Document
    rows: BatchRows
    names: Sequence[TopicIdPartition] = field(default_factory=list)

    @classmethod
    def of(cls, file: Any, table: pa.Table) -> Coordinates:
        """From the answer of `ControlPlane.batches_of`."""
        named = zip(*(table[name].to_pylist() for name in ("topicId", "topic", "partition")), strict=True)
        partitions = [TopicIdPartition(uuid_text(topic_id), topic, number) for topic_id, topic, number in named]
        names = list(dict.fromkeys(partitions))
        numbers = {name: number for number, name in enumerate(names)}
        of_rows = np.array([numbers[partition] for partition in partitions], np.int64)
        return cls(dict(file), batch_rows(table, of_rows), names)

    def owners(self, walked: WalkedObject) -> list[Document]:
        """Owner and assigned offsets of each batch."""
        documents = [_NO_PARTITION] * len(walked.positions)
        spans, rows = spans_of(walked, self.rows), self.rows
        before = np.append(0, np.cumsum(walked.counts))
        for row in np.flatnonzero(spans.framed).tolist():
            first = int(spans.firsts[row])
            for batch in range(first, int(spans.lasts[row]) + 1):
                base = int(rows.bases[row] + before[batch] - before[first])
                documents[batch] = {
                    **partition_document(self.names[int(rows.partitions[row])]),
                    "batchId": int(rows.ids[row]),
                    "baseOffset": base,
                    "lastOffset": base + int(walked.counts[batch]) - 1,
                }
        return documents


def inspect(store: ObjectStore, key: str, control_plane: ControlPlane | None) -> InspectedObject:
    """What looks missing or damaged is read again over new connections: bytes may be altered on the way. Raises
    TieredctlError `object-missing`, and as the store and the control plane do."""
    described = None if control_plane is None else control_plane.batches_of(key)
    inspected = read_again(
        store,
        lambda at: _inspected(at, key, described),
        (ErrorCode.OBJECT_MISSING,),
        is_sound=lambda found: not found.findings,
    )
    return _with_doubts(inspected, store, control_plane)


def _inspected(store: ObjectStore, key: str, described: tuple[Any, pa.Table] | None) -> InspectedObject:
    stored = store.head(key)
    if stored is None:
        raise TieredctlError(ErrorCode.OBJECT_MISSING, f"{store.url} has no object {key}.")
    walked = walk(store.stream(key), stored.size)
    if described is None:
        return InspectedObject(key, walked, None, [*_damages(key, walked)])
    coordinates = Coordinates.of(*described)
    rows, size = coordinates.rows, coordinates.file["size"]
    findings, _ = check_batches(key, walked, rows, size, coordinates.names, np.zeros(len(rows), np.bool_))
    return InspectedObject(key, walked, coordinates, findings)


def _with_doubts(one: InspectedObject, store: ObjectStore, control_plane: ControlPlane | None) -> InspectedObject:
    known = one.coordinates
    if known and int(known.rows.sizes.sum()) >= one.walked.size and all(name.topic for name in known.names):
        return one
    return replace(one, findings=[*one.findings, *_doubts(one.key, store, control_plane)])


def _doubts(key: str, store: ObjectStore, control_plane: ControlPlane | None) -> Iterator[Finding]:
    """Before it is said that no batch needs an object, or some bytes of it: whether that is known."""
    if control_plane is not None and (doubt := doubt_about_object(control_plane.tables(), store.url)):
        yield doubt_finding(doubt, key)


def file_document(file: Any) -> Document:
    """A file, in the names of FILES, as it is shown."""
    marked = file["markedForDeletionMs"]
    return {
        "fileId": file["fileId"],
        "state": FileState(file["state"]).name.lower(),
        "size": file["size"],
        "uploaderBrokerId": file["uploaderBrokerId"],
        "committedAt": iso_8601(file["committedMs"]),
        "markedForDeletionAt": None if marked is None else iso_8601(marked),
    }


def batch_at(walked: WalkedObject, base: int, offset: int) -> tuple[int, int] | None:
    """Position and size of the record batch that holds an offset, where all of them lie side by side from `base` on;
    None where none does."""
    ends: Ints = np.cumsum(walked.counts) + base
    batch = int(np.searchsorted(ends, offset, side="right"))
    if walked.damages or batch == len(ends):
        return None
    return int(walked.positions[batch]), int(walked.sizes[batch])


def _damages(key: str, walked: WalkedObject) -> Iterator[Finding]:
    for damage in walked.damages:
        message = f"bytes {damage.position} to {damage.end - 1} hold no sound record batch: {damage.reason}"
        yield object_finding(FindingCode.BATCH_CORRUPT, key, message, position=damage.position)


def _values(header: Any) -> BatchHeader:
    return BatchHeader(*(int(header[field.name]) for field in BATCH_HEADER.fields))


def _header_document(header: BatchHeader) -> Document:
    codec = header.attributes & 7
    return {
        "records": header.records_count,
        "compression": Codec(codec).name.lower() if codec in set(Codec) else None,
        "timestampType": _TIMESTAMP_TYPES[header.attributes >> 3 & 1],
        "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "crc": header.crc,
    }

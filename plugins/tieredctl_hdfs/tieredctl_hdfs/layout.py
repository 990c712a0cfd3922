"""The layout `hdfs`, that of Uber's HDFSRemoteStorageManager: a file for each segment, with all of its parts,
`<topic>-<partition>-<topic id>/<segment id>`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import UUID_PATTERN, TopicIdPartition
from tieredctl.ports.layout import (
    UNNAMED_OFFSET,
    AlteredObject,
    ExplainedKey,
    Layout,
    OtherForm,
    Part,
    RecordedMetadata,
    SegmentIdentity,
    SegmentReader,
)
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore
from tieredctl_hdfs.header import HEADER_BYTES, decode_header

NAME = "hdfs"
# An id has a known width and a partition no dash, so the whole splits in one way only, whatever dashes a topic has.
_KEY = re.compile(
    rf"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>0|[1-9][0-9]{{0,9}})-(?P<topic_id>{UUID_PATTERN})/(?P<segment_id>{UUID_PATTERN})"
)
_MAX_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class HdfsLayout:
    """One file for each segment. Its key names no start offset, and nothing in it is an object of its own."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def verbatim_parts(self) -> frozenset[Part]:
        return frozenset()

    def settled_in(self, store: ObjectStore) -> Layout:  # noqa: ARG002 - all is in a key
        return self

    def explain(self, key: str) -> ExplainedKey | None:
        match = _KEY.fullmatch(key)
        if match is None or (partition := int(match["partition"])) > _MAX_PARTITION:
            return None
        return ExplainedKey(match["topic"], match["topic_id"], partition, UNNAMED_OFFSET, match["segment_id"], Part.LOG)

    def other_form(self, key: str) -> OtherForm | None:  # noqa: ARG002 - there is only one
        return None

    @property
    def form_outside(self) -> OtherForm | None:
        return None

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        return f"{partition.topic}-{partition.partition}-{partition.topic_id}/"

    def promised_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        return {Part.LOG: self.partition_prefix(segment.topic_id_partition) + segment.segment_id}

    def optional_objects(self, segment: SegmentIdentity) -> dict[Part, str]:  # noqa: ARG002 - all is in one
        return {}

    def original_log_size(self, stored: Mapping[Part, int]) -> int | None:  # noqa: ARG002 - its header tells
        return None

    def stored_size(self, segment: SegmentIdentity) -> int | None:  # noqa: ARG002 - there is no custom metadata
        return None

    def recorded_metadata(self, store: ObjectStore, segment: SegmentIdentity) -> RecordedMetadata | None:  # noqa: ARG002
        return None

    def custom_metadata(self, segment: SegmentIdentity, stored_bytes: int, like: bytes | None) -> bytes | None:  # noqa: ARG002
        return None

    def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
        return FileReader(store, self.promised_objects(segment)[Part.LOG])


def hdfs_layout(options: Mapping[str, str]) -> Layout:
    """The layout, which has no options. Raises TieredctlError `usage` when given one."""
    for option in options:
        raise TieredctlError(ErrorCode.USAGE, f"Layout {NAME} has no option {option!r}.")
    return HdfsLayout()


@dataclass(slots=True)
class FileReader:
    """A `SegmentReader` over the file of one segment, whose header is read once."""

    store: ObjectStore
    key: str
    _found: dict[Part, tuple[int, int]] | None = field(default=None, init=False)

    def parts(self) -> dict[Part, int]:
        return {part: end - begin for part, (begin, end) in self._places().items()}

    def contradictions(self) -> list[AlteredObject]:
        return []

    def chunk_bytes(self) -> int:
        return 1

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        begin, limit = self._place(part)
        first, last = begin + start, limit if end is None else min(begin + end, limit)
        return self.store.read(self.key, first, last) if first < last else b""

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        begin, limit = self._place(part)
        for position in range(begin, limit, max(chunk_size, STREAM_CHUNK_BYTES)):
            data = self.store.read(self.key, position, min(position + max(chunk_size, STREAM_CHUNK_BYTES), limit))
            for first in range(0, len(data), chunk_size):
                yield data[first : first + chunk_size]

    def _place(self, part: Part) -> tuple[int, int]:
        place = self._places().get(part)
        if place is None:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, f"{self.key} has no {part}.")
        return place

    def _places(self) -> dict[Part, tuple[int, int]]:
        if self._found is None:
            stored = self.store.head(self.key)
            if stored is None:
                raise TieredctlError(ErrorCode.OBJECT_MISSING, f"There is no object {self.key} in {self.store.url}.")
            places = decode_header(self.store.read(self.key, 0, HEADER_BYTES), stored.size)
            # The plugin writes none as an empty one, which a broker never does.
            begin, end = places[Part.TRANSACTION_INDEX]
            if begin == end:
                del places[Part.TRANSACTION_INDEX]
            self._found = places
        return self._found

"""The names that Kafka's LocalTieredStorage gives (RemoteTopicPartitionDirectory, RemoteLogSegmentFileset):
`<topic>-<partition>-<topic id>/<start offset, 20 digits>-<segment id><suffix>`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart
from tieredctl.model.ids import UUID_PATTERN, TopicIdPartition
from tieredctl.ports.layout import (
    ORIGINAL_PARTS,
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

NAME = "local"
_SUFFIXES = {
    Part.LOG: SegmentPart.LOG.value,
    Part.OFFSET_INDEX: SegmentPart.OFFSET_INDEX.value,
    Part.TIME_INDEX: SegmentPart.TIME_INDEX.value,
    Part.PRODUCER_SNAPSHOT: SegmentPart.PRODUCER_SNAPSHOT.value,
    Part.LEADER_EPOCH: SegmentPart.LEADER_EPOCH_CHECKPOINT.value,
}
_OPTIONAL_SUFFIXES = {Part.TRANSACTION_INDEX: SegmentPart.TRANSACTION_INDEX.value}
_PARTS = {suffix: part for part, suffix in (_SUFFIXES | _OPTIONAL_SUFFIXES).items()}

# An id has a known width and a partition no dash, so the whole splits in one way only, whatever dashes a topic has.
_KEY = re.compile(
    rf"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>0|[1-9][0-9]{{0,9}})-(?P<topic_id>{UUID_PATTERN})"
    rf"/(?P<start_offset>[0-9]{{20}})-(?P<segment_id>{UUID_PATTERN})(?P<suffix>\.[a-z_]+)"
)
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LocalLayout:
    """One file for each part of a segment, bytes unchanged."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def verbatim_parts(self) -> frozenset[Part]:
        return frozenset(ORIGINAL_PARTS)

    def settled_in(self, store: ObjectStore) -> Layout:  # noqa: ARG002 - all is in a key
        return self

    def explain(self, key: str) -> ExplainedKey | None:
        match = _KEY.fullmatch(key)
        part = _PARTS.get(match["suffix"]) if match else None
        if match is None or part is None:
            return None
        partition, start_offset = int(match["partition"]), int(match["start_offset"])
        if partition > _MAX_PARTITION or start_offset > _MAX_OFFSET:
            return None
        return ExplainedKey(match["topic"], match["topic_id"], partition, start_offset, match["segment_id"], part)

    def other_form(self, key: str) -> OtherForm | None:  # noqa: ARG002 - there is only one
        return None

    @property
    def form_outside(self) -> OtherForm | None:
        return None

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        return f"{partition.topic}-{partition.partition}-{partition.topic_id}/"

    def promised_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        return self._keys(segment, _SUFFIXES)

    def optional_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        return self._keys(segment, _OPTIONAL_SUFFIXES)

    def original_log_size(self, stored: Mapping[Part, int]) -> int | None:
        return stored.get(Part.LOG)

    def stored_size(self, segment: SegmentIdentity) -> int | None:  # noqa: ARG002 - there is no custom metadata
        return None

    def recorded_metadata(self, store: ObjectStore, segment: SegmentIdentity) -> RecordedMetadata | None:  # noqa: ARG002
        return None

    def custom_metadata(self, segment: SegmentIdentity, stored_bytes: int, like: bytes | None) -> bytes | None:  # noqa: ARG002
        return None

    def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
        return FilesetReader(store, self.promised_objects(segment) | self.optional_objects(segment))

    def _keys(self, segment: SegmentIdentity, suffixes: Mapping[Part, str]) -> dict[Part, str]:
        stem = f"{self.partition_prefix(segment.topic_id_partition)}{segment.start_offset:020}-{segment.segment_id}"
        return {part: stem + suffix for part, suffix in suffixes.items()}


def local_layout(options: Mapping[str, str]) -> Layout:
    """The layout, which has no options. Raises TieredctlError `usage` when given one."""
    for option in options:
        raise TieredctlError(ErrorCode.USAGE, f"Layout {NAME} has no option {option!r}.")
    return LocalLayout()


@dataclass(frozen=True, slots=True)
class FilesetReader:
    """A `SegmentReader` over the files of one segment (Kafka's RemoteLogSegmentFileset)."""

    store: ObjectStore
    keys: Mapping[Part, str]

    def parts(self) -> dict[Part, int]:
        stored = {part: self.store.head(key) for part, key in self.keys.items()}
        return {part: stored_object.size for part, stored_object in stored.items() if stored_object}

    def contradictions(self) -> list[AlteredObject]:
        return []

    def chunk_bytes(self) -> int:
        return 1

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        return self.store.read(self._key(part), start, end)

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        return self.store.stream(self._key(part), chunk_size=chunk_size)

    def _key(self, part: Part) -> str:
        if part not in self.keys:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, f"This layout stores no {part} of a segment.")
        return self.keys[part]

"""What `__remote_wal_log_metadata` holds: events about combined objects and the segments in them (KIP-1176).

The proposal gives classes and no wire form; docs/wal.md lists what tieredctl had to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tieredctl.model.events import RemoteLogSegmentState, TaggedField
from tieredctl.model.ids import TopicIdPartition

WAL_METADATA_TOPIC = "__remote_wal_log_metadata"
NO_POSITION = -1
"""A file position that is not known before the upload (the proposal's `-1, -1`)."""
NO_LEADER = -1
"""The leader epoch of an event that no leader wrote: a cleaner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRange:
    """Bytes of a combined object, both ends inclusive, as `RemoteWalStorageManager.fetchLogSegment` counts them; both
    NO_POSITION before the upload.

    Raises ValueError for a range that is neither.
    """

    start_file_position: int = NO_POSITION
    end_file_position: int = NO_POSITION

    def __post_init__(self) -> None:
        start, end = self.start_file_position, self.end_file_position
        if self.is_placed and not 0 <= start <= end:
            raise ValueError(f"impossible file positions {start} to {end}")

    @property
    def is_placed(self) -> bool:
        """Whether the range is known."""
        return self.start_file_position != NO_POSITION or self.end_file_position != NO_POSITION

    @property
    def size(self) -> int:
        """In bytes; 0 before the upload."""
        return self.end_file_position - self.start_file_position + 1 if self.is_placed else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataEntry(FileRange):
    """A segment in a combined object."""

    topic_id_partition: TopicIdPartition
    segment_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Combined:
    """What both events about a combined object have. Time in milliseconds since the epoch."""

    combined_segment_id: str
    entries: tuple[RemoteLogSegmentMetadataEntry, ...]
    broker_id: int
    event_timestamp_ms: int
    state: RemoteLogSegmentState
    custom_metadata: bytes | None = None
    tagged_fields: tuple[TaggedField, ...] = ()

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError("a combined object without segments")
        _demand_in_order(self.entries)
        if self.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED and not all(one.is_placed for one in self.entries):
            raise ValueError("an uploaded object without file positions")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWalCombinedLogSegmentMetadata(_Combined):
    """A combined object whose upload begins. Entries are in the order of the object; raises ValueError if not."""

    state: RemoteLogSegmentState = RemoteLogSegmentState.COPY_SEGMENT_STARTED


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWalCombinedLogSegmentMetadataUpdate(_Combined):
    """A combined object's next state, with the positions as they are from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _WalSegment(FileRange):
    """What both events about a segment have.

    `combined_coordinator_partition` is the partition of `__remote_wal_log_metadata` that has the events of its combined
    object. `leader_epoch` is that of the leader which wrote the event, or NO_LEADER.
    """

    topic_id_partition: TopicIdPartition
    segment_id: str
    broker_id: int
    leader_epoch: int
    event_timestamp_ms: int
    combined_segment_id: str
    combined_coordinator_partition: int
    state: RemoteLogSegmentState
    custom_metadata: bytes | None = None
    tagged_fields: tuple[TaggedField, ...] = ()

    def __post_init__(self) -> None:
        super(_WalSegment, self).__post_init__()
        if self.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED and not self.is_placed:
            raise ValueError("an uploaded segment without file positions")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWalLogSegmentMetadata(_WalSegment):
    """Consecutive batches of a partition, whose upload in a combined object begins.

    Offsets are inclusive; size is in bytes. `segment_leader_epochs` holds (leader epoch, first offset of it in this
    segment): both ascend, from the segment's first offset on. Raises ValueError for what no log can have.
    """

    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    segment_leader_epochs: tuple[tuple[int, int], ...]
    segment_size_in_bytes: int
    state: RemoteLogSegmentState = RemoteLogSegmentState.COPY_SEGMENT_STARTED

    def __post_init__(self) -> None:
        super(RemoteWalLogSegmentMetadata, self).__post_init__()
        if not 0 <= self.start_offset <= self.end_offset:
            raise ValueError(f"impossible offsets {self.start_offset} to {self.end_offset}")
        if not self.segment_leader_epochs:
            raise ValueError("no segment leader epochs")
        if any(later[0] <= earlier[0] for earlier, later in pairwise(self.segment_leader_epochs)):
            raise ValueError("segment leader epochs that do not rise")
        starts = [offset for _, offset in self.segment_leader_epochs]
        if starts[0] != self.start_offset:
            raise ValueError(f"leader epochs from offset {starts[0]} of offsets from {self.start_offset}")
        if starts[-1] > self.end_offset or any(later <= earlier for earlier, later in pairwise(starts)):
            raise ValueError("start offsets of leader epochs that do not rise up to the end offset")
        if self.segment_size_in_bytes <= 0:
            raise ValueError(f"impossible size {self.segment_size_in_bytes}")
        if self.is_placed and self.size != self.segment_size_in_bytes:
            raise ValueError(f"file positions of {self.size} bytes for {self.segment_size_in_bytes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWalLogSegmentMetadataUpdate(_WalSegment):
    """A segment's next state. Replaces the author, time, state, custom metadata, object and positions known so far."""


WalEvent = (
    RemoteWalLogSegmentMetadata
    | RemoteWalLogSegmentMetadataUpdate
    | RemoteWalCombinedLogSegmentMetadata
    | RemoteWalCombinedLogSegmentMetadataUpdate
)
CombinedEvent = RemoteWalCombinedLogSegmentMetadata | RemoteWalCombinedLogSegmentMetadataUpdate
WalSegmentEvent = RemoteWalLogSegmentMetadata | RemoteWalLogSegmentMetadataUpdate


def _demand_in_order(ranges: Sequence[FileRange]) -> None:
    """Raises ValueError unless ranges rise without overlap, or none is known yet."""
    if not any(one.is_placed for one in ranges):
        return
    if any(later.start_file_position <= earlier.end_file_position for earlier, later in pairwise(ranges)):
        raise ValueError("file positions that overlap, or are not in order")

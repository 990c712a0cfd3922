"""Which state may follow which (Kafka's RemoteLogSegmentState and RemotePartitionDeleteState)."""

from __future__ import annotations

from tieredctl.model.events import RemoteLogSegmentState as Segment
from tieredctl.model.events import RemotePartitionDeleteState as Partition

_SEGMENT_TRANSITIONS: dict[Segment | None, frozenset[Segment]] = {
    None: frozenset({Segment.COPY_SEGMENT_STARTED}),
    Segment.COPY_SEGMENT_STARTED: frozenset(
        {Segment.COPY_SEGMENT_STARTED, Segment.COPY_SEGMENT_FINISHED, Segment.DELETE_SEGMENT_STARTED}
    ),
    Segment.COPY_SEGMENT_FINISHED: frozenset({Segment.COPY_SEGMENT_FINISHED, Segment.DELETE_SEGMENT_STARTED}),
    Segment.DELETE_SEGMENT_STARTED: frozenset({Segment.DELETE_SEGMENT_STARTED, Segment.DELETE_SEGMENT_FINISHED}),
    Segment.DELETE_SEGMENT_FINISHED: frozenset({Segment.DELETE_SEGMENT_FINISHED}),
}
_PARTITION_TRANSITIONS: dict[Partition | None, frozenset[Partition]] = {
    None: frozenset({Partition.DELETE_PARTITION_MARKED}),
    Partition.DELETE_PARTITION_MARKED: frozenset(
        {Partition.DELETE_PARTITION_MARKED, Partition.DELETE_PARTITION_STARTED}
    ),
    Partition.DELETE_PARTITION_STARTED: frozenset(
        {Partition.DELETE_PARTITION_STARTED, Partition.DELETE_PARTITION_FINISHED}
    ),
    Partition.DELETE_PARTITION_FINISHED: frozenset({Partition.DELETE_PARTITION_FINISHED}),
}


def segment_may_become(before: Segment | None, after: Segment) -> bool:
    """Whether a segment in state `before` (None: never seen) may be said to be in `after`."""
    return after in _SEGMENT_TRANSITIONS[before]


def partition_may_become(before: Partition | None, after: Partition) -> bool:
    """The same for the removal of a partition."""
    return after in _PARTITION_TRANSITIONS[before]

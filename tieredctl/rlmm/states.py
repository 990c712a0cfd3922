"""The states that may follow each other (Kafka's RemoteLogSegmentState and RemotePartitionDeleteState)."""

from __future__ import annotations

from enum import Enum

from tieredctl.model.events import DELETION_STATES
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
    """Whether a segment in state `before` (None: never seen) may go to `after`."""
    return after in _SEGMENT_TRANSITIONS[before]


def partition_may_become(before: Partition | None, after: Partition) -> bool:
    """Whether one state of a partition's removal may follow another."""
    return after in _PARTITION_TRANSITIONS[before]


class Refusal(Enum):
    """Why Kafka's cache does not take an event."""

    ILLEGAL_TRANSITION = "the state machine does not allow it: Kafka logs an error and drops it"
    NOT_A_START = "a segment must begin in COPY_SEGMENT_STARTED: Kafka's reader of this topic stops here"
    START_AS_UPDATE = "an update cannot lead to COPY_SEGMENT_STARTED: Kafka's reader of this topic stops here"
    UNKNOWN_SEGMENT = "no such segment is known: Kafka logs a warning and drops it"
    REMOVED_PARTITION = "its partition was removed: Kafka's reader of this topic stops here"
    DELETED_ALREADY = "its deletion has finished: of two leaders, the later one wrote this; Kafka drops it"
    """Every change of leader may leave such events, which say nothing new."""


def start_refusal(before: Segment | None, after: Segment) -> Refusal | None:
    """Why an event that begins a copy is refused for a segment in state `before`; None where it is taken."""
    if after is not Segment.COPY_SEGMENT_STARTED:
        return Refusal.NOT_A_START
    return None if segment_may_become(before, after) else Refusal.ILLEGAL_TRANSITION


def update_refusal(before: Segment | None, after: Segment) -> Refusal | None:
    """Why an update may not put a segment into a state; None where it may."""
    if before is None:
        return Refusal.UNKNOWN_SEGMENT
    if not segment_may_become(before, after):
        return Refusal.ILLEGAL_TRANSITION
    return Refusal.START_AS_UPDATE if after is Segment.COPY_SEGMENT_STARTED else None


def refusal_once_deleted(after: Segment, refusal: Refusal | None) -> Refusal | None:
    """Why an update is refused for a segment whose deletion has finished, which the cache no longer knows."""
    late = refusal is Refusal.UNKNOWN_SEGMENT and after in DELETION_STATES
    return Refusal.DELETED_ALREADY if late else refusal

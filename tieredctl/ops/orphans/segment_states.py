"""What metadata says in the end of every segment that it ever named: `rlmm.replay` by columns, of states alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns, joined_uuids
from tieredctl.formats.uuid_lookup import UuidLookup, grouped
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.orphans.event_columns import EventColumns, joined_events
from tieredctl.ops.orphans.segment_events import SegmentEvents
from tieredctl.ops.orphans.superseded_copies import superseded_copies
from tieredctl.rlmm.states import segment_may_become

NO_STATE = 4
"""Of a segment that no event could begin, or one that two partitions claim."""
_STATES = tuple(RemoteLogSegmentState)


@dataclass(frozen=True)
class SegmentStates:
    """A row for each segment, those deleted too, in no order. Offsets are inclusive."""

    segment_ids: UuidColumns
    states: NDArray[np.int8]
    """RemoteLogSegmentState or NO_STATE."""
    owners: Ints
    """Rows of `partitions`."""
    start_offsets: Ints
    metadata_partitions: Ints
    metadata_offsets: Ints
    """Of the last event that the state machine allowed."""
    superseded: Flags
    """Whether the copy began, never ended, and another of the same partition that overlaps it began later."""
    partitions: Sequence[TopicIdPartition]
    partition_deletes: Mapping[int, RemotePartitionDeleteState]
    last_timestamp_ms: int

    @property
    def ids(self) -> pa.StringArray:
        """The segments' ids as Kafka prints them, made when they are asked for."""
        return self.segment_ids.texts()

    @cached_property
    def rows(self) -> UuidLookup:
        """Finds rows by segment id."""
        return UuidLookup(self.segment_ids)


def segment_states(found: SegmentEvents) -> SegmentStates:
    """Applies each segment's events in their order; what the state machine forbids changes nothing."""
    buckets = [_bucket_states(events) for events in found.buckets]
    states = _joined([bucket.states for bucket in buckets])
    owners = _joined([bucket.owners for bucket in buckets])
    superseded = np.zeros(len(states), np.bool_)
    unfinished = np.flatnonzero(states == RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    concerned = np.zeros(len(found.partitions), np.bool_)
    concerned[owners[unfinished]] = True
    copies = joined_events([bucket.unfinished for bucket in buckets])
    superseded[unfinished] = superseded_copies(copies, _copies(found, buckets, concerned))
    return SegmentStates(
        joined_uuids([bucket.segment_ids for bucket in buckets]),
        states,
        owners,
        _joined([bucket.start_offsets for bucket in buckets]),
        _joined([bucket.metadata_partitions for bucket in buckets]),
        _joined([bucket.metadata_offsets for bucket in buckets]),
        superseded,
        list(found.partitions),
        found.partition_deletes,
        found.last_timestamp_ms,
    )


@dataclass(frozen=True, slots=True)
class _Bucket:
    """What a bucket of events says: a row for each segment, but the last two."""

    segment_ids: UuidColumns
    states: NDArray[np.int8]
    owners: Ints
    start_offsets: Ints
    metadata_partitions: Ints
    metadata_offsets: Ints
    unfinished: EventColumns
    """The events that the copies began with that have not ended, by segment."""
    copies: Flags
    """Which of the bucket's events began a copy, and were allowed to."""


def _bucket_states(events: EventColumns) -> _Bucket:
    order, ids = _by_segment(events)
    first = ids.changes()
    begins = np.flatnonzero(first)
    starting, after = events.starts[order], events.states[order]
    allowed = _allowed(starting, after, begins)
    lasts, starts = (_last_of_each(chosen, begins) for chosen in (allowed, allowed & starting))
    states = np.where(allowed[lasts], after[lasts], np.int8(NO_STATE))
    states[_shared(events.partitions[order], first)] = NO_STATE
    last_events, start_events = order[lasts], order[starts]
    copies = np.empty_like(starting)
    copies[order] = allowed & starting
    return _Bucket(
        ids.at(begins),
        states,
        events.partitions[last_events].astype(np.int64),
        events.start_offsets[start_events],
        events.metadata_partitions[last_events].astype(np.int64),
        events.metadata_offsets[last_events],
        events.at(start_events[states == RemoteLogSegmentState.COPY_SEGMENT_STARTED]),
        copies,
    )


def _by_segment(events: EventColumns) -> tuple[Ints, UuidColumns]:
    """An order in which each segment's events stand together, as they are in the log; and the ids in it."""
    order, ids = grouped(events.segment_ids)
    partitions, offsets = events.metadata_partitions[order], events.metadata_offsets[order]
    falls = (partitions[1:] < partitions[:-1]) | ((partitions[1:] == partitions[:-1]) & (offsets[1:] < offsets[:-1]))
    if (falls & ~ids.changes()[1:]).any():
        order = np.lexsort((events.metadata_offsets, events.metadata_partitions, *events.segment_ids.halves()))
        ids = events.segment_ids.at(order)
    return order, ids


def _copies(found: SegmentEvents, buckets: Sequence[_Bucket], concerned: Flags) -> EventColumns:
    """The events that began a copy in some of the partitions."""
    chosen = []
    if concerned.any():
        for events, bucket in zip(found.buckets, buckets, strict=True):
            chosen.append(events.at(np.flatnonzero(bucket.copies & concerned[events.partitions])))
    return joined_events(chosen)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _transitions() -> Flags:
    """[state before][whether the event is the beginning of a copy][state after], as the cache has it."""
    allowed = np.zeros((NO_STATE + 1, 2, len(_STATES)), np.bool_)
    started = RemoteLogSegmentState.COPY_SEGMENT_STARTED
    for number, before in enumerate([*_STATES, None]):
        # A segment that was deleted is forgotten.
        known = None if before is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED else before
        allowed[number, 1, started] = segment_may_become(known, started)
        for after in _STATES:
            if after is not started and known is not None:
                allowed[number, 0, after] = segment_may_become(known, after)
    return allowed


_ALLOWED = _transitions()


def _allowed(starting: Flags, after: NDArray[np.int8], begins: Ints) -> Flags:
    """Which events may follow those that are allowed before them; those of a segment stand together from one of
    `begins` on."""
    before = np.empty_like(after)
    before[1:] = after[:-1]
    before[begins] = NO_STATE
    # Right for every segment all of whose events are allowed, as they nearly always are.
    allowed: Flags = _ALLOWED[before, starting.view(np.int8), after]
    behind = np.append(begins[1:], len(after))
    doubtful = np.unique(np.searchsorted(begins, np.flatnonzero(~allowed), side="right") - 1)
    rows, ends = begins[doubtful], behind[doubtful]
    states = np.full(len(doubtful), NO_STATE, np.int8)
    # All those segments one event further at a time.
    while len(rows):
        allowed[rows] = may = _ALLOWED[states, starting.view(np.int8)[rows], after[rows]]
        states = np.where(may, after[rows], states)
        rows = rows + 1
        going_on = rows < ends
        rows, ends, states = rows[going_on], ends[going_on], states[going_on]
    return allowed


def _last_of_each(chosen: Flags, begins: Ints) -> Ints:
    """Each segment's last row of those chosen; its first row where none is."""
    if not len(begins):
        return begins
    lasts: Ints = np.maximum.reduceat(np.where(chosen, np.arange(len(chosen)), -1), begins)
    return np.maximum(lasts, begins)


def _shared(partitions: NDArray[np.int32], first: Flags) -> Ints:
    """The segments that events of two partitions claim."""
    changes = np.flatnonzero((partitions[1:] != partitions[:-1]) & ~first[1:]) + 1
    return np.cumsum(first)[changes] - 1 if len(changes) else changes

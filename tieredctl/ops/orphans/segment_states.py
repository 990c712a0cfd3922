"""The final state of every segment that metadata ever named, by id: who owns objects.

Which offsets of each partition metadata proves to be in finished copies, and so elsewhere than in an object.

Of a copy that began, and by its events never ended, the offsets are known. Of an object that metadata never named:

An object's name says where its segment begins, not where it ends. A leader copies its log without gaps, from the
highest offset that it knows to be copied (RemoteLogManager.copyLogSegment), and keeps what it has not copied. So where
finished copies hold an object's first offset and all known ones after it, and a leader began one of them when the store
had the object already, then that leader had the rest of its records still, and copies them too. A finished copy that
Kafka deleted since proves as much. Which leader epochs the records are of is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns, UuidLookup, grouped
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import NO_STATE, ReplayedBucket, SegmentRows, joined_rows, replayed_buckets

_NO_OFFSET = -1


@dataclass(frozen=True)
class SegmentStates:
    """A row for each segment, those deleted too, in no order. Offsets are inclusive."""

    segment_ids: UuidColumns
    states: NDArray[np.int8]
    """RemoteLogSegmentState; NO_STATE for a segment that was never begun or that two partitions claim."""
    owners: Ints
    """Rows of `partitions`."""
    start_offsets: Ints
    metadata_partitions: Ints
    metadata_offsets: Ints
    """The offset of the last event that the state machine allowed."""
    superseded: Flags
    """Whether the copy began, by its events never ended, and is needed no more: another of the same partition that
    overlaps it began later, and finished copies hold all of its offsets."""
    partitions: Sequence[TopicIdPartition]
    partition_deletes: Mapping[int, RemotePartitionDeleteState]
    copied: CopiedOffsets
    """By rows of `partitions`."""
    last_timestamp_ms: int

    @property
    def ids(self) -> pa.StringArray:
        """The segments' ids as Kafka prints them, made on demand."""
        return self.segment_ids.text_array()

    @cached_property
    def rows(self) -> UuidLookup:
        """Finds rows by segment id."""
        return UuidLookup(self.segment_ids)

    def topics_with_segments(self) -> set[str]:
        """The topic ids with segments that brokers may read, if the topic exists."""
        finished = self.states == RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        owners = np.unique(self.owners[finished]).tolist()
        return {self.partitions[owner].topic_id for owner in owners if owner not in self.partition_deletes}

    def one_of_each(self) -> SegmentStates:
        """The states with one row for each id: in NO_STATE where several rows claim it, of which the first by the place
        of its last event is kept. What is put together piece by piece is so in the end, too."""
        order, ids = grouped(self.segment_ids)
        if ids.changes().all():
            return self
        order = np.lexsort((self.metadata_offsets, self.metadata_partitions, *self.segment_ids.halves()))
        first = self.segment_ids.at(order).changes()
        shared = np.zeros(len(order), np.bool_)
        shared[1:] |= ~first[1:]
        shared[:-1] |= ~first[1:]
        states = np.where(shared, np.int8(NO_STATE), self.states[order])
        kept = np.flatnonzero(first)
        rows = order[kept]
        return replace(
            self,
            segment_ids=self.segment_ids.at(rows),
            states=states[kept],
            owners=self.owners[rows],
            start_offsets=self.start_offsets[rows],
            metadata_partitions=self.metadata_partitions[rows],
            metadata_offsets=self.metadata_offsets[rows],
            superseded=self.superseded[rows],
        )


def segment_states(events: SegmentEvents) -> SegmentStates:
    """The states after all events that were taken."""
    return states_in_partitions(events).one_of_each()


def states_in_partitions(events: SegmentEvents) -> SegmentStates:
    """The states after all events, with a row for each partition that claims an id."""
    buckets = list(replayed_buckets(events))
    segments = joined_rows([bucket.segments for bucket in buckets])
    start_offsets = np.full(len(segments), _NO_OFFSET, np.int64)
    began = segments.states != NO_STATE
    start_offsets[began] = events.contents.starts.start_offsets.values[segments.starts[began]]
    # Some may be deleted by now.
    finished = np.flatnonzero(segments.are_copied)
    stretches = _stretches(events, segments, finished)
    return SegmentStates(
        segments.segment_ids,
        segments.states,
        segments.partitions.astype(np.int64),
        start_offsets,
        segments.metadata_partitions.astype(np.int64),
        segments.metadata_offsets,
        _superseded(events, buckets, segments, stretches),
        list(events.partitions),
        {one.partition: one.state for one in events.partition_deletes},
        _copied(events, segments, finished, stretches),
        events.last_timestamp_ms,
    )


def _stretches(events: SegmentEvents, segments: SegmentRows, finished: Ints) -> CopiedStretches:
    begun, starts = events.contents.starts, segments.starts[finished]
    owners = segments.partitions[finished].astype(np.int64)
    return CopiedStretches.of(owners, begun.start_offsets.values[starts], begun.end_offsets.values[starts])


def _copied(events: SegmentEvents, segments: SegmentRows, finished: Ints, stretches: CopiedStretches) -> CopiedOffsets:
    facts, starts = events.contents.starts.said, segments.starts[finished]
    begun_ms = np.where(facts.authors.values[starts] == NO_BROKER, NEVER, facts.event_timestamps.values[starts])
    return CopiedOffsets.of(len(events.partitions), stretches, segments.partitions[finished].astype(np.int64), begun_ms)


def _superseded(
    events: SegmentEvents, buckets: Sequence[ReplayedBucket], segments: SegmentRows, finished: CopiedStretches
) -> Flags:
    superseded = np.zeros(len(segments), np.bool_)
    unfinished = np.flatnonzero(segments.states == RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    if not len(unfinished):
        return superseded
    concerned = np.zeros(len(events.partitions), np.bool_)
    concerned[segments.partitions[unfinished]] = True
    columns = segments.partitions[unfinished], segments.metadata_offsets[unfinished], segments.starts[unfinished]
    copies, others = _copies(events, *columns), _all_copies(events, buckets, concerned)
    # The event that it ended may be lost, and the one that began later may begin above it.
    held = finished.hold(copies.partitions.astype(np.int64), copies.start_offsets, copies.end_offsets)
    superseded[unfinished] = superseded_copies(copies, others) & held
    return superseded


def _all_copies(segment_events: SegmentEvents, buckets: Sequence[ReplayedBucket], concerned: Flags) -> Copies:
    """The segments that some partitions' events began."""
    columns: list[tuple[NDArray[Any], ...]] = []
    for events, bucket in zip(segment_events.buckets, buckets, strict=True):
        rows = np.flatnonzero(bucket.takes & events.starts & concerned[events.partitions])
        columns.append((events.partitions[rows], events.metadata_offsets[rows], events.contents[rows]))
    return _copies(segment_events, *map(np.concatenate, zip(*columns, strict=True)))


def _copies(
    events: SegmentEvents, partitions: NDArray[np.int32], metadata_offsets: Ints, starts: NDArray[np.int32]
) -> Copies:
    begun = events.contents.starts
    return Copies(partitions, metadata_offsets, begun.start_offsets.values[starts], begun.end_offsets.values[starts])


_NEAR = 64


class Copies(NamedTuple):
    """The events that began copies, one per row. Offsets are inclusive."""

    partitions: NDArray[np.int32]
    metadata_offsets: Ints
    start_offsets: Ints
    end_offsets: Ints

    def at(self, rows: Ints) -> Copies:
        """Some of them."""
        columns = self.partitions[rows], self.metadata_offsets[rows]
        return Copies(*columns, self.start_offsets[rows], self.end_offsets[rows])


def superseded_copies(copies: Copies, all_copies: Copies) -> Flags:
    """Whether another copy of the partition that overlaps it began later, for each event that began a copy.

    `all_copies` are all such events of those partitions. A leader tries again what it could not copy before it goes
    on, so that the other copy is nearly always among the next that began.
    """
    superseded = np.zeros(len(copies.partitions), np.bool_)
    if not len(copies.partitions):
        return superseded
    others = all_copies.at(np.lexsort((all_copies.metadata_offsets, all_copies.partitions)))
    later, ends = _later(copies, others)
    open_ = np.flatnonzero(later < ends)
    for step in range(_NEAR):
        overlaps = _overlap(copies, open_, others, later[open_] + step)
        superseded[open_[overlaps]] = True
        open_ = open_[~overlaps]
        open_ = open_[later[open_] + step + 1 < ends[open_]]
    for row in open_.tolist():
        rest = np.arange(later[row] + _NEAR, ends[row])
        superseded[row] = _overlap(copies, np.array([row]), others, rest).any()
    return superseded


def _later(copies: Copies, others: Copies) -> tuple[Ints, Ints]:
    """The copies that began later in the partition of each: from where on, and up to where."""
    edges = np.searchsorted(others.partitions, np.arange(int(others.partitions.max(initial=-1)) + 2))
    # Ranks instead of offsets, so that both fit into one number that rises.
    offsets = np.unique(others.metadata_offsets)
    places = others.partitions * (len(offsets) + 1) + np.searchsorted(offsets, others.metadata_offsets)
    ranks = np.searchsorted(offsets, copies.metadata_offsets, side="right")
    later = np.searchsorted(places, copies.partitions * (len(offsets) + 1) + ranks)
    return later, edges[copies.partitions + 1]


def _overlap(copies: Copies, rows: Ints, others: Copies, other_rows: Ints) -> Flags:
    overlap: Flags = (others.start_offsets[other_rows] <= copies.end_offsets[rows]) & (
        others.end_offsets[other_rows] >= copies.start_offsets[rows]
    )
    return overlap


@dataclass(frozen=True, slots=True)
class CopiedStretches:
    """Offsets that finished copies hold without a gap: a row for each stretch, by partition, then by offset. Offsets
    are inclusive."""

    owners: Ints
    firsts: Ints
    lasts: Ints

    @classmethod
    def of(cls, owners: Ints, starts: Ints, ends: Ints) -> CopiedStretches:
        """The stretches of finished copies, a row each, in no order."""
        order = np.lexsort((starts, owners))
        owners, starts, ends = owners[order], starts[order], ends[order]
        highest = _highest_so_far(owners, ends)
        begins = np.ones(len(owners), np.bool_)
        begins[1:] = (owners[1:] != owners[:-1]) | (starts[1:] - 1 > highest[:-1])
        edges = np.append(np.flatnonzero(begins), len(owners))
        return cls(owners[edges[:-1]], starts[edges[:-1]], highest[edges[1:] - 1])

    def hold(self, owners: Ints, starts: Ints, ends: Ints) -> Flags:
        """Whether all offsets of some ranges are in one stretch."""
        if not len(self.owners):
            return np.zeros(len(owners), np.bool_)
        # Ranks instead of offsets, so that both fit into one number that rises.
        distinct = np.unique(self.firsts)
        places = self.owners * (len(distinct) + 1) + np.searchsorted(distinct, self.firsts)
        wanted = owners * (len(distinct) + 1) + np.searchsorted(distinct, starts, side="right") - 1
        rows = np.maximum(np.searchsorted(places, wanted, side="right") - 1, 0)
        held: Flags = (self.owners[rows] == owners) & (self.firsts[rows] <= starts) & (ends <= self.lasts[rows])
        return held


NEVER = -1
"""When a copy began that no broker did: what `recover metadata` registers again has the time of the recovery."""
NOTHING = (int(np.iinfo(np.int64).max), -1, NEVER)
"""The row of a partition of which nothing is known to be copied."""


@dataclass(frozen=True, slots=True)
class CopiedOffsets:
    """A row for each partition, then one that stands for all others. Offsets are inclusive, times in ms."""

    firsts: Ints
    """From where on finished copies hold every offset,"""
    lasts: Ints
    """up to the highest that any of them holds."""
    begun_ms: Ints
    """When the last of them began that a broker began, by its event; NEVER if none did."""

    @classmethod
    def none(cls, partitions: int) -> CopiedOffsets:
        """Offsets of which nothing is known to be copied."""
        return cls(*(np.full(partitions + 1, one, np.int64) for one in NOTHING))

    @classmethod
    def of(cls, partitions: int, stretches: CopiedStretches, owners: Ints, begun_ms: Ints) -> CopiedOffsets:
        """The offsets by the stretches of so many partitions, and when each of the finished copies in them began."""
        copied = cls.none(partitions)
        # Of the rows of one partition, the last stays.
        copied.firsts[stretches.owners] = stretches.firsts
        copied.lasts[stretches.owners] = stretches.lasts
        np.maximum.at(copied.begun_ms, owners, begun_ms)
        return copied

    def hold(self, partitions: Ints, start_offsets: Ints, modified_ms: Ints) -> Flags:
        """Whether they prove that the records of objects of these partitions are elsewhere, by where the objects begin
        and since when, at the latest, the store has had them."""
        held: Flags = (self.firsts[partitions] <= start_offsets) & (start_offsets <= self.lasts[partitions])
        return held & (modified_ms <= self.begun_ms[partitions])


def _highest_so_far(owners: Ints, ends: Ints) -> Ints:
    """The highest end of each owner's rows up to each; rows of an owner stand together, and owners rise."""
    # Ranks instead of offsets, so that both fit into one number that rises.
    distinct, ranks = np.unique(ends, return_inverse=True)
    highest = np.maximum.accumulate(owners * len(distinct) + ranks)
    return distinct[highest - owners * len(distinct)]

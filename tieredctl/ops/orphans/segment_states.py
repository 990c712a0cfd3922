"""The final state of every segment that metadata ever named, by id: who owns objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns
from tieredctl.formats.uuid_lookup import UuidLookup, grouped
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_publisher import NO_BROKER
from tieredctl.ops.orphans.copied_offsets import NEVER, CopiedOffsets, CopiedStretches
from tieredctl.ops.orphans.superseded_copies import Copies, superseded_copies
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
    """Of the last event that the state machine allowed."""
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
        """With a row for each id: in NO_STATE where several rows claim it, of which the first by the place of its last
        event is kept. What is put together piece by piece is so in the end, too."""
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


def segment_states(found: SegmentEvents) -> SegmentStates:
    """The states after all events that were taken."""
    return states_in_partitions(found).one_of_each()


def states_in_partitions(found: SegmentEvents) -> SegmentStates:
    """The same, with a row for each partition that claims an id."""
    buckets = list(replayed_buckets(found))
    segments = joined_rows([bucket.segments for bucket in buckets])
    start_offsets = np.full(len(segments), _NO_OFFSET, np.int64)
    began = segments.states != NO_STATE
    start_offsets[began] = found.contents.starts.start_offsets.values[segments.starts[began]]
    # Some may be deleted by now.
    finished = np.flatnonzero(segments.are_copied)
    stretches = _stretches(found, segments, finished)
    return SegmentStates(
        segments.segment_ids,
        segments.states,
        segments.partitions.astype(np.int64),
        start_offsets,
        segments.metadata_partitions.astype(np.int64),
        segments.metadata_offsets,
        _superseded(found, buckets, segments, stretches),
        list(found.partitions),
        {one.partition: one.state for one in found.partition_deletes},
        _copied(found, segments, finished, stretches),
        found.last_timestamp_ms,
    )


def _stretches(found: SegmentEvents, segments: SegmentRows, finished: Ints) -> CopiedStretches:
    begun, starts = found.contents.starts, segments.starts[finished]
    owners = segments.partitions[finished].astype(np.int64)
    return CopiedStretches.of(owners, begun.start_offsets.values[starts], begun.end_offsets.values[starts])


def _copied(found: SegmentEvents, segments: SegmentRows, finished: Ints, stretches: CopiedStretches) -> CopiedOffsets:
    said, starts = found.contents.starts.said, segments.starts[finished]
    begun_ms = np.where(said.authors.values[starts] == NO_BROKER, NEVER, said.event_timestamps.values[starts])
    return CopiedOffsets.of(len(found.partitions), stretches, segments.partitions[finished].astype(np.int64), begun_ms)


def _superseded(
    found: SegmentEvents, buckets: Sequence[ReplayedBucket], segments: SegmentRows, finished: CopiedStretches
) -> Flags:
    superseded = np.zeros(len(segments), np.bool_)
    unfinished = np.flatnonzero(segments.states == RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    if not len(unfinished):
        return superseded
    concerned = np.zeros(len(found.partitions), np.bool_)
    concerned[segments.partitions[unfinished]] = True
    columns = segments.partitions[unfinished], segments.metadata_offsets[unfinished], segments.starts[unfinished]
    copies, others = _copies(found, *columns), _all_copies(found, buckets, concerned)
    # The event that it ended may be lost, and the one that began later may begin above it.
    held = finished.hold(copies.partitions.astype(np.int64), copies.start_offsets, copies.end_offsets)
    superseded[unfinished] = superseded_copies(copies, others) & held
    return superseded


def _all_copies(found: SegmentEvents, buckets: Sequence[ReplayedBucket], concerned: Flags) -> Copies:
    """The segments that some partitions' events began."""
    columns: list[tuple[NDArray[Any], ...]] = []
    for events, bucket in zip(found.buckets, buckets, strict=True):
        rows = np.flatnonzero(bucket.takes & events.starts & concerned[events.partitions])
        columns.append((events.partitions[rows], events.metadata_offsets[rows], events.contents[rows]))
    return _copies(found, *map(np.concatenate, zip(*columns, strict=True)))


def _copies(
    found: SegmentEvents, partitions: NDArray[np.int32], metadata_offsets: Ints, starts: NDArray[np.int32]
) -> Copies:
    begun = found.contents.starts
    return Copies(partitions, metadata_offsets, begun.start_offsets.values[starts], begun.end_offsets.values[starts])

"""The states that segments were in, of a replay: by columns, never an object for each segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import number_array
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.rlmm.event_columns import EventColumns, joined_events
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_rows import replayed_buckets
from tieredctl_spark.arrow.instants import instants
from tieredctl_spark.tables.kinds import SEGMENT_HISTORY

_STATES = pa.array([state.name for state in RemoteLogSegmentState], pa.string())
_DELETED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
_REMOVED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
_OPEN = np.iinfo(np.int64).max
"""The end of a state that has not ended; beyond every date, so that it is null in the table."""


def history_rows(metadata: ReplayedMetadata, removed_ms: Mapping[tuple[int, int], int]) -> pa.Table:
    """Every state of every segment, by `SEGMENT_HISTORY.columns`: those that events which were taken brought about.

    `removed_ms` are the times of the events that end partitions' removals, by metadata partition and offset: they end
    the states of their segments that no other event ended.
    """
    events = _entered(metadata)
    contents = metadata.events.contents
    begins = contents.event_timestamps(events.starts, events.contents)
    same = _follow(events)
    ends = np.where(np.append(same[1:], False), np.append(begins[1:], _OPEN), _OPEN) if len(events) else begins
    ends = _ended_by_removals(metadata, events, ends, removed_ms)
    begun_by = _starts_of(events)
    columns = {
        **_partitions(metadata, events.partitions),
        "segmentId": events.segment_ids.text_array(),
        "state": _STATES.take(number_array(events.states)),
        "validFrom": instants(number_array(begins)),
        "validTo": instants(number_array(ends)),
        "brokerId": number_array(contents.authors(events.starts, events.contents).astype(np.int32)),
        "metadataPartition": number_array(events.metadata_partitions),
        "metadataOffset": number_array(events.metadata_offsets),
        "maxTimestamp": instants(number_array(contents.starts.max_timestamps.values[begun_by])),
    }
    return pa.table([columns[name] for name in SEGMENT_HISTORY.columns.names], SEGMENT_HISTORY.columns.names)


def _entered(metadata: ReplayedMetadata) -> EventColumns:
    """The events that put a segment into another state, each segment's together, in their order."""
    found = metadata.events
    taken = [
        events.at(np.flatnonzero(bucket.takes))
        for events, bucket in zip(found.buckets, replayed_buckets(found), strict=True)
    ]
    events = joined_events(taken)
    ids = events.segment_ids
    order = np.lexsort((events.metadata_offsets, events.metadata_partitions, ids.low, ids.high, events.partitions))
    events = events.at(order)
    # Brokers say STARTED again at each retry.
    repeats = _follow(events) & (events.states == np.append(np.int8(-1), events.states[:-1]))
    return events.at(np.flatnonzero(~repeats))


def _follow(events: EventColumns) -> Flags:
    """Whether each event is of the same segment as the one before."""
    if not len(events):
        return np.zeros(0, np.bool_)
    ids = events.segment_ids
    same: Flags = np.zeros(len(events), np.bool_)
    same[1:] = (ids.high[1:] == ids.high[:-1]) & (ids.low[1:] == ids.low[:-1])
    same[1:] &= events.partitions[1:] == events.partitions[:-1]
    return same


def _starts_of(events: EventColumns) -> Ints:
    """The row of what the copy of each event's segment began with: every life begins with such an event."""
    last = np.maximum.accumulate(np.where(events.starts, np.arange(len(events)), 0))
    return events.contents[last].astype(np.int64) if len(events) else np.zeros(0, np.int64)


def _ended_by_removals(
    metadata: ReplayedMetadata, events: EventColumns, ends: Ints, removed_ms: Mapping[tuple[int, int], int]
) -> Ints:
    ends = ends.copy()
    for one in sorted(metadata.events.partition_deletes, key=lambda delete: delete.metadata_offset):
        place = one.metadata_partition, one.metadata_offset
        if one.state is not _REMOVED or place not in removed_ms:
            continue
        before = (events.partitions == one.partition) & (events.metadata_offsets < one.metadata_offset)
        ends[before & (ends == _OPEN) & (events.states != _DELETED)] = removed_ms[place]
    return ends


def _partitions(metadata: ReplayedMetadata, numbers: Any) -> dict[str, pa.Array]:
    taken = number_array(np.asarray(numbers, np.int64))
    return {
        "topic": pa.array([one.topic for one in metadata.partitions], pa.string()).take(taken),
        "topicId": pa.array([one.topic_id for one in metadata.partitions], pa.string()).take(taken),
        "partition": pa.array([one.partition for one in metadata.partitions], pa.int32()).take(taken),
    }

"""What a broker knows of one partition, put together from its events by columns: the same as `cache.py` has after it
took each of them."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.rlmm.cache import DeletedOffsets, LeaderEpochState, RemoteLogMetadataCache
from tieredctl.rlmm.event_columns import EventColumns
from tieredctl.rlmm.event_contents import StartedCopies
from tieredctl.rlmm.partition_removals import PartitionRemovals
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import by_segment, known_segments, replayed_events

_STARTED, _COPIED, _DELETING, _ = RemoteLogSegmentState


def replayed_cache(described: SegmentEvents, number: int) -> RemoteLogMetadataCache:
    """The cache of the partition with a number, as of its present life; `described` has its events."""
    events = described.buckets.of_partition(number)
    lives = PartitionRemovals(described.partition_deletes, len(described.partitions)).lives(events)
    events = events.at(np.flatnonzero(lives.are_last & ~lives.refused))
    bucket = replayed_events(events, PartitionRemovals((), len(described.partitions)))
    known_rows = bucket.segments.at(np.flatnonzero(bucket.segments.are_known))
    taken = _taken(events.at(np.flatnonzero(bucket.takes)))
    starts = described.contents.starts
    return RemoteLogMetadataCache(
        {segment.metadata.segment_id: segment for _, segment in known_segments(described, known_rows)},
        _leader_epochs(starts, taken),
        _deleted_offsets(starts, taken),
    )


class _Taken(NamedTuple):
    """The events that a broker takes, in order."""

    events: EventColumns
    segments: Ints
    """The segment that each is about: a number."""
    ids: list[str]
    """The ids of the segments, by number."""
    begun: NDArray[np.int32]
    """What the copy of its segment began with: a row of `EventContents.starts`."""


def _taken(events: EventColumns) -> _Taken:
    order, ids = by_segment(events)
    first = ids.changes()
    # The first that is taken of a segment is one that a copy begins with.
    begins = np.maximum.accumulate(np.where(events.starts[order], np.arange(len(order)), 0))
    segments, begun = np.empty(len(order), np.int64), np.empty(len(order), np.int32)
    segments[order] = np.cumsum(first) - 1
    begun[order] = events.contents[order][begins]
    return _Taken(events, segments, ids.at(np.flatnonzero(first)).texts(), begun)


def _deleted_offsets(starts: StartedCopies, taken: _Taken) -> DeletedOffsets:
    """A copy that never ended held nothing: its removal, which brokers do after each failure, explains no hole."""
    states = taken.events.states
    ended = np.isin(taken.begun, taken.begun[states == _COPIED])
    gone = taken.begun[ended & (states == _DELETING)]
    firsts, lasts = starts.start_offsets.values[gone], starts.end_offsets.values[gone]
    return DeletedOffsets(list(zip(firsts.tolist(), lasts.tolist(), strict=True)))


def _leader_epochs(starts: StartedCopies, taken: _Taken) -> dict[int, LeaderEpochState]:
    """What the events leave of each leader epoch: they say the same of every epoch that their segment has."""
    epochs = starts.epoch_ranges(taken.begun)
    numbers, firsts, lasts = epochs.elements.values()
    events = np.repeat(np.arange(len(taken.begun)), np.diff(epochs.bounds))
    order = np.argsort(numbers, kind="stable")
    columns = (numbers, taken.segments[events], taken.events.states[events], firsts, lasts)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    left: dict[int, LeaderEpochState] = {}
    for epoch, of_epoch in groupby(rows, key=itemgetter(0)):
        state = left[epoch] = LeaderEpochState()
        for _, segment, event, first, last in of_epoch:
            if event == _COPIED:
                state.copy_finished(taken.ids[segment], first, last)
            elif event == _STARTED:
                state.copy_started(taken.ids[segment])
            elif event == _DELETING:
                state.delete_started(taken.ids[segment], first)
            else:
                state.delete_finished(taken.ids[segment])
    return left

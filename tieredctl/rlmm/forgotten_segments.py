"""Forgets the events of deleted segments, so that whoever follows the metadata for months keeps only what is there.

Nothing that is asked of the others changes by it: a deleted segment is to every further event what one is that never
was. Only in a partition's cache others depend on it, where their offsets meet: so it is forgotten only while all others
of its partition, and all that come later, lie above it.
"""

from __future__ import annotations

import numpy as np

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.rlmm.event_columns import EventColumns, joined_events
from tieredctl.rlmm.event_contents import Rows, StartedCopies
from tieredctl.rlmm.partition_removals import PartitionRemovals
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import SegmentRows, by_segment, replayed_events

_LIMITS = np.iinfo(np.int64)
_NO_HOME = -1
_REMEMBERED = 64
"""How many forgotten segments' ids are kept for each metadata partition: of two leaders that delete one, the later is
late by seconds."""


class ForgottenSegments:
    """Up to which offsets segments were forgotten."""

    def __init__(self) -> None:
        self._highest = np.zeros(0, np.int64)
        """The highest offset that was forgotten of each partition, by its number."""
        self._homes = np.zeros(0, np.int64)
        """The metadata partition of each that has forgotten ones."""

    def are_met(self, added: SegmentEvents) -> bool:
        """Whether events came since that may have to do with forgotten segments: then all have to be read again."""
        self._make_room(len(added.partitions))
        if not (self._homes != _NO_HOME).any():
            return False
        deletes = ((one.partition, one.metadata_partition) for one in added.partition_deletes)
        if any(self._homes[partition] not in (_NO_HOME, number) for partition, number in deletes):
            return True
        return any(self._are_met_by(added, events) for events in added.buckets)

    def forget(self, described: SegmentEvents) -> SegmentEvents:
        """The events without those of segments that can be forgotten; only while none was met."""
        count = len(described.partitions)
        self._make_room(count)
        events = joined_events(list(described.buckets))
        replayed = replayed_events(events, PartitionRemovals(described.partition_deletes, count))
        segments, numbers = replayed.segments, _segment_numbers(events)
        lows, highs = np.full(len(segments), _LIMITS.max), np.full(len(segments), _LIMITS.min)
        begun = np.flatnonzero(events.starts)
        least, most = _bounds(described.contents.starts, events.contents[begun])
        np.minimum.at(lows, numbers[begun], least)
        np.maximum.at(highs, numbers[begun], most)

        are_gone = segments.states == RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
        are_gone[numbers[~replayed.takes]] = False  # what was refused is reported as long as it is there
        are_gone &= ~_with_odd_places(described, events)[segments.partitions]
        lowest_kept = np.full(count, _LIMITS.max)
        np.minimum.at(lowest_kept, segments.partitions[~are_gone], lows[~are_gone])
        are_gone &= highs < lowest_kept[segments.partitions]

        gone = np.flatnonzero(are_gone)
        np.maximum.at(self._highest, segments.partitions[gone], highs[gone])
        self._homes[segments.partitions[gone]] = segments.metadata_partitions[gone]
        _remember(described, segments.at(gone))
        return described.only(events.at(np.flatnonzero(~are_gone[numbers])))

    def _are_met_by(self, added: SegmentEvents, events: EventColumns) -> bool:
        homes = self._homes[events.partitions]
        if ((homes != _NO_HOME) & (homes != events.metadata_partitions)).any():
            return True
        begun = np.flatnonzero(events.starts & (homes != _NO_HOME))
        lows, _ = _bounds(added.contents.starts, events.contents[begun])
        return bool((lows <= self._highest[events.partitions[begun]]).any())

    def _make_room(self, partitions: int) -> None:
        more = partitions - len(self._homes)
        self._highest = np.append(self._highest, np.full(more, _LIMITS.min))
        self._homes = np.append(self._homes, np.full(more, _NO_HOME))


def _remember(described: SegmentEvents, segments: SegmentRows) -> None:
    """Adds the last of some segments, and drops the earliest where there are too many."""
    order = np.lexsort((segments.metadata_offsets, segments.metadata_partitions))
    homes, forgotten = segments.metadata_partitions[order], described.forgotten
    from_end = np.searchsorted(homes, homes, side="right") - np.arange(len(homes))
    for row in order[from_end <= _REMEMBERED].tolist():
        forgotten[int(segments.partitions[row]), segments.segment_ids.bytes_of(row)] = None
    most = _REMEMBERED * max(1, len(described.first_records_ms))
    for earliest in list(forgotten)[: max(0, len(forgotten) - most)]:
        del forgotten[earliest]


def _segment_numbers(events: EventColumns) -> Ints:
    """The number of each event's segment in its partition, as replay numbers them."""
    order, ids = by_segment(events)
    first, owners = ids.changes(), events.partitions[order]
    first[1:] |= owners[1:] != owners[:-1]
    numbers = np.empty(len(events), np.int64)
    numbers[order] = np.cumsum(first) - 1
    return numbers


def _with_odd_places(described: SegmentEvents, events: EventColumns) -> Flags:
    """The partitions that have events in several metadata partitions, or that somebody began to remove."""
    count = len(described.partitions)
    lowest, highest = np.full(count, _LIMITS.max), np.full(count, _LIMITS.min)
    np.minimum.at(lowest, events.partitions, events.metadata_partitions)
    np.maximum.at(highest, events.partitions, events.metadata_partitions)
    odd: Flags = highest > lowest
    odd[[one.partition for one in described.partition_deletes]] = True
    return odd


def _bounds(starts: StartedCopies, rows: Rows) -> tuple[Ints, Ints]:
    """The lowest and the highest offset that each of some events names."""
    begins, ends = starts.start_offsets.values[rows], starts.end_offsets.values[rows]
    lows, highs = np.minimum(begins, ends), np.maximum(begins, ends)
    epochs = starts.epoch_ranges(rows)
    owners = np.repeat(np.arange(len(rows)), np.diff(epochs.bounds))
    for name in ("Offset", "LastOffset"):
        np.minimum.at(lows, owners, epochs.elements[name])
        np.maximum.at(highs, owners, epochs.elements[name])
    return lows, highs

"""The state of every segment after its events, by columns: `cache.py` for all of a cluster's segments at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns, grouped, joined_uuids
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.event_columns import EventColumns, joined_events
from tieredctl.rlmm.failed_copies import EndedCopies, ended_copies
from tieredctl.rlmm.partition_removals import Lives, PartitionRemovals
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.states import start_refusal, update_refusal

NO_STATE = 4
"""The state of a segment that was never begun."""
_STATES = tuple(RemoteLogSegmentState)
_DELETED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
_COPIED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """A row for each segment of each partition, including those that are gone, in no order."""

    segment_ids: UuidColumns
    partitions: NDArray[np.int32]
    """Rows of `SegmentEvents.partitions`."""
    states: NDArray[np.int8]
    """RemoteLogSegmentState or NO_STATE."""
    are_known: Flags
    """Whether a broker still knows it: its deletion has not finished, and neither has that of its partition."""
    are_copied: Flags
    """Whether its copy finished, since it last began; it may be deleted by now."""
    starts: NDArray[np.int32]
    """Its beginning: a row of `EventContents.starts`."""
    lasts: NDArray[np.int32]
    """Its last event that was taken: a row of `starts` in COPY_SEGMENT_STARTED, otherwise of `updates`."""
    entries: NDArray[np.int32]
    """The event that put it into its state, like `lasts`. Brokers say STARTED again at each retry."""
    tries: NDArray[np.int32]
    """How many events that were taken say its state, from that one on."""
    metadata_partitions: NDArray[np.int32]
    """Where its last event that was taken is; the first event for a segment that was never begun."""
    metadata_offsets: Ints
    events: NDArray[np.int32]
    """How many it has had since it began."""

    def __len__(self) -> int:
        return len(self.states)

    def at(self, rows: Ints) -> SegmentRows:
        """Some of them."""
        columns = (getattr(self, one.name) for one in fields(self)[1:])
        return SegmentRows(self.segment_ids.at(rows), *(column[rows] for column in columns))


@dataclass(frozen=True, slots=True)
class RefusedEvents:
    """Events that changed nothing, one per row."""

    events: EventColumns
    before: NDArray[np.int8]
    """The state that the segment was in, or NO_STATE."""
    are_of_removed: Flags
    """Whether their partition was removed."""


@dataclass(frozen=True, slots=True)
class ReplayedBucket:
    """The result of a bucket of events."""

    segments: SegmentRows
    refused: RefusedEvents
    takes: Flags
    """Which of the bucket's events were taken."""
    copies: EndedCopies
    """In the present life of each partition."""
    partitions: Ints
    """The partitions that a broker knows: they had an event, and were not removed since."""


def replayed_buckets(described: SegmentEvents) -> Iterator[ReplayedBucket]:
    """Applies each segment's events in their order; what the state machine forbids changes nothing. In the order of the
    buckets of events."""
    removals = PartitionRemovals(described.partition_deletes, len(described.partitions))
    return (replayed_events(events, removals) for events in described.buckets)


def joined_rows(parts: Sequence[SegmentRows]) -> SegmentRows:
    """One after the other; at least one."""
    if len(parts) == 1:
        return parts[0]
    columns = (np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(SegmentRows)[1:])
    return SegmentRows(joined_uuids([part.segment_ids for part in parts]), *columns)


def joined_refused(parts: Sequence[RefusedEvents]) -> RefusedEvents:
    """One after the other; at least one."""
    return RefusedEvents(
        joined_events([part.events for part in parts]),
        np.concatenate([part.before for part in parts]),
        np.concatenate([part.are_of_removed for part in parts]),
    )


def replayed_events(events: EventColumns, removals: PartitionRemovals) -> ReplayedBucket:
    """What events leave that are all of their segments; in no order but that a segment's are as they were read."""
    order, ids = by_segment(events)
    lives = removals.lives(events)
    ordered, in_order = events.at(order), lives.at(order)
    first = ids.changes()
    first[1:] |= ordered.partitions[1:] != ordered.partitions[:-1]
    of_segments = np.flatnonzero(first)
    first[1:] |= in_order.numbers[1:] != in_order.numbers[:-1]
    begins = np.flatnonzero(first)
    taken, before = _taken(ordered, in_order.refused, begins)
    segments = _segments(ordered, in_order, taken, before, begins)
    if len(of_segments) < len(begins):
        segments = segments.at(_latest(segments, np.searchsorted(begins, of_segments)))
    refused = np.flatnonzero(~taken)
    takes = np.empty_like(taken)
    takes[order] = taken
    return ReplayedBucket(
        segments,
        RefusedEvents(ordered.at(refused), before[refused], in_order.refused[refused]),
        takes,
        ended_copies(ordered, taken & in_order.are_last, begins, _last_of_each(taken & ordered.starts, begins)),
        np.flatnonzero(np.bincount(events.partitions[lives.are_last & ~lives.refused])),
    )


def by_segment(events: EventColumns) -> tuple[Ints, UuidColumns]:
    """An order in which the events of each partition's segments stand together, as they are in the log; and the ids in
    it."""
    order, ids = grouped(events.segment_ids)
    owners, partitions, offsets = (
        column[order] for column in (events.partitions, events.metadata_partitions, events.metadata_offsets)
    )
    falls = (partitions[1:] < partitions[:-1]) | ((partitions[1:] == partitions[:-1]) & (offsets[1:] < offsets[:-1]))
    falls |= owners[1:] != owners[:-1]
    if (falls & ~ids.changes()[1:]).any():
        places = (events.metadata_offsets, events.metadata_partitions)
        order = np.lexsort((*places, events.partitions, *events.segment_ids.halves()))
        ids = events.segment_ids.at(order)
    return order, ids


def _segments(events: EventColumns, lives: Lives, taken: Flags, before: NDArray[np.int8], begins: Ints) -> SegmentRows:
    lasts = _last_of_each(taken, begins)
    starts = _last_of_each(taken & events.starts, begins)
    entries = _last_of_each(taken & (before != events.states), begins)
    births = _last_of_each(taken & events.starts & ((before == NO_STATE) | (before == _DELETED)), begins)
    states = np.where(taken[lasts], events.states[lasts], np.int8(NO_STATE))
    is_finish = taken & (events.states == _COPIED)
    finishes = _last_of_each(is_finish, begins)
    counts = np.cumsum(taken, dtype=np.int32)
    return SegmentRows(
        events.segment_ids.at(begins),
        events.partitions[lasts],
        states,
        lives.are_last[lasts] & (states != NO_STATE) & (states != _DELETED),
        is_finish[finishes] & (finishes > starts),
        events.contents[starts],
        events.contents[lasts],
        events.contents[entries],
        counts[lasts] - counts[entries] + 1,
        events.metadata_partitions[lasts],
        events.metadata_offsets[lasts],
        (np.append(begins[1:], len(events)) - births).astype(np.int32),
    )


def _latest(segments: SegmentRows, firsts: Ints) -> Ints:
    """The last life that began, of each segment that had several, from a row of `firsts` on."""
    began = np.where(segments.states != NO_STATE, np.arange(len(segments)), -1)
    return np.maximum(np.maximum.reduceat(began, firsts), firsts)


def _last_of_each(chosen: Flags, begins: Ints) -> Ints:
    """Each segment's last row of those chosen; its first row where none is."""
    if not len(begins):
        return begins
    lasts: Ints = np.maximum.reduceat(np.where(chosen, np.arange(len(chosen)), -1), begins)
    return np.maximum(lasts, begins)


def _transitions() -> Flags:
    """[state before][whether the event is the beginning of a copy][state after], as the cache has it."""
    allowed = np.zeros((NO_STATE + 1, 2, len(_STATES)), np.bool_)
    for number in range(NO_STATE + 1):
        for after in _STATES:
            allowed[number, 0, after] = update_refusal(state_known(number), after) is None
            allowed[number, 1, after] = start_refusal(state_known(number), after) is None
    return allowed


def state_known(number: int) -> RemoteLogSegmentState | None:
    """A segment's state as a broker knows it; None for a deleted segment."""
    return None if number in (NO_STATE, _DELETED) else RemoteLogSegmentState(number)


_ALLOWED = _transitions()


def _taken(events: EventColumns, refused: Flags, begins: Ints) -> tuple[Flags, NDArray[np.int8]]:
    """Flags the events that may follow those that were taken before them, with the state in which each found its
    segment; a segment's stand together from one of `begins` on. Those `refused` change nothing whatever they say."""
    starting, after = events.starts.view(np.int8), events.states
    before = np.empty_like(after)
    before[1:] = after[:-1]
    before[begins] = NO_STATE
    # Right for every segment all of whose events are taken, as they nearly always are.
    taken: Flags = _ALLOWED[before, starting, after] & ~refused
    following = np.append(begins[1:], len(after))
    doubtful = np.flatnonzero(~np.logical_and.reduceat(taken, begins))
    rows, ends = begins[doubtful], following[doubtful]
    states = np.full(len(doubtful), NO_STATE, np.int8)
    # All those segments one event further at a time.
    while len(rows):
        before[rows] = states
        taken[rows] = may = _ALLOWED[states, starting[rows], after[rows]] & ~refused[rows]
        states = np.where(may, after[rows], states)
        rows = rows + 1
        going_on = rows < ends
        rows, ends, states = rows[going_on], ends[going_on], states[going_on]
    return taken, before


_STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
_AT_ONCE = 1 << 12


def known_segments(events: SegmentEvents, segments: SegmentRows) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
    """Each of some segments, which `events` describe, with its partition."""
    partitions = list(events.partitions)
    for first in range(0, len(segments), _AT_ONCE):
        yield from _as_known_segments(
            events, partitions, segments.at(np.arange(first, min(first + _AT_ONCE, len(segments))))
        )


def event_timestamps(events: SegmentEvents, segments: SegmentRows) -> Ints:
    """The timestamps of the last events of some segments, in milliseconds since the epoch."""
    return events.contents.event_timestamps(_are_started(segments), segments.lasts)


def entered_ms(events: SegmentEvents, segments: SegmentRows) -> Ints:
    """When some segments entered their states, in milliseconds since the epoch: events that say a state again do not
    count."""
    return events.contents.event_timestamps(_are_started(segments), segments.entries)


def authors(events: SegmentEvents, segments: SegmentRows) -> Ints:
    """Who wrote the last events of some segments."""
    return events.contents.authors(_are_started(segments), segments.lasts)


def custom_metadata(events: SegmentEvents, segments: SegmentRows) -> list[bytes | None]:
    """Custom metadata by the last events of some segments."""
    started, contents = _are_started(segments), events.contents
    customs: list[bytes | None] = [None] * len(segments)
    for which, contents_of_kind in ((started, contents.starts.said), (~started, contents.updates.said)):
        places = np.flatnonzero(which)
        for place, custom in zip(places.tolist(), contents_of_kind.customs.of(segments.lasts[places]), strict=True):
            customs[place] = custom
    return customs


def have_custom_metadata(events: SegmentEvents, segments: SegmentRows) -> Flags:
    """Whether the last events of some segments have any."""
    started, contents = _are_started(segments), events.contents
    have_customs = np.empty(len(segments), np.bool_)
    for which, contents_of_kind in ((started, contents.starts.said), (~started, contents.updates.said)):
        have_customs[which] = contents_of_kind.customs.are_of(segments.lasts[which])
    return have_customs


def _are_started(segments: SegmentRows) -> Flags:
    """Segments whose last event is COPY_SEGMENT_STARTED."""
    started: Flags = segments.states == _STARTED
    return started


def _as_known_segments(
    events: SegmentEvents, partitions: list[TopicIdPartition], segments: SegmentRows
) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
    columns = zip(
        (partitions[number] for number in segments.partitions.tolist()),
        segments.segment_ids.texts(),
        events.contents.starts.objects(segments.starts),
        authors(events, segments).tolist(),
        event_timestamps(events, segments).tolist(),
        custom_metadata(events, segments),
        segments.states.tolist(),
        segments.metadata_partitions.tolist(),
        segments.metadata_offsets.tolist(),
        entered_ms(events, segments).tolist(),
        segments.tries.tolist(),
        strict=True,
    )
    for partition, segment_id, start_fields, author, timestamp_ms, custom, state, *history in columns:
        metadata = RemoteLogSegmentMetadata(
            topic_id_partition=partition,
            segment_id=segment_id,
            author=author,
            event_timestamp_ms=timestamp_ms,
            custom_metadata=custom,
            state=_STATES[state],
            **start_fields,
        )
        yield partition, KnownSegment(metadata, *history)

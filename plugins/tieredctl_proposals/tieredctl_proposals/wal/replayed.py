"""The state of every combined object, and of every segment in them, after the events that were read; by columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tieredctl.formats.uuid_columns import NOT_FOUND, UuidColumns, UuidLookup, grouped, uuids_of_texts
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.event_contents import Rows
from tieredctl.rlmm.partition_removals import PartitionRemovals
from tieredctl.rlmm.segment_rows import (
    NO_STATE,
    RefusedEvents,
    SegmentRows,
    joined_refused,
    joined_rows,
    known_segments,
    replayed_buckets,
    replayed_events,
    state_known,
)
from tieredctl.rlmm.states import Refusal, start_refusal, update_refusal
from tieredctl_proposals.model.wal_events import (
    NO_LEADER,
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadata,
)
from tieredctl_proposals.wal.events import WalEvents
from tieredctl_proposals.wal.placements import Placements

_STATES = tuple(RemoteLogSegmentState)
_STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED


class RefusedWalEvent(NamedTuple):
    """An event that changed nothing: the id is that of a segment, or of a combined object."""

    metadata_partition: int
    metadata_offset: int
    id: str
    before: RemoteLogSegmentState | None
    after: RemoteLogSegmentState
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class KnownCombined:
    """A combined object as of its last event, and which event that was."""

    metadata: RemoteWalCombinedLogSegmentMetadata
    metadata_partition: int
    metadata_offset: int


@dataclass(frozen=True, slots=True)
class KnownWalSegment:
    """A segment as of its last event, and where that says it is: file positions are inclusive, -1 if unknown."""

    known: KnownSegment
    leader_epoch: int
    combined_segment_id: str
    combined_coordinator_partition: int
    start_file_position: int
    end_file_position: int

    @property
    def metadata(self) -> RemoteLogSegmentMetadata:
        """The segment's offsets, epochs, size and state."""
        return self.known.metadata

    @property
    def segment_id(self) -> str:
        return self.known.metadata.segment_id

    @property
    def is_readable(self) -> bool:
        """Whether it is uploaded, to as many bytes as it has."""
        size = self.end_file_position - self.start_file_position + 1
        is_uploaded = self.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        return is_uploaded and self.start_file_position >= 0 and size == self.metadata.segment_size_in_bytes

    @property
    def is_cleaned(self) -> bool:
        """Whether a cleaner deletes or deleted what was uploaded. What a leader deletes, its log does not have."""
        is_deleted = self.metadata.state in (
            RemoteLogSegmentState.DELETE_SEGMENT_STARTED,
            RemoteLogSegmentState.DELETE_SEGMENT_FINISHED,
        )
        return is_deleted and self.leader_epoch == NO_LEADER and self.start_file_position >= 0


class WalPartition:
    """What a reader of one partition knows: which segment serves an offset, and where it is.

    KIP-405's cache would not do: segments of one log never overlap there, but an upload that is repeated with more
    batches begins where the first one did, and that may be reported later all the same. It would hide the longer one.
    """

    def __init__(self, segments: Iterable[KnownWalSegment] = ()) -> None:
        """Segments that are not deleted."""
        self.segments: Mapping[str, KnownWalSegment] = {one.segment_id: one for one in segments}
        self._epochs = {epoch: _furthest(ranges) for epoch, ranges in self._ranges().items()}

    def segment_for(self, leader_epoch: int, offset: int) -> KnownWalSegment | None:
        """The uploaded segment that reaches furthest, of those that have an offset of a leader epoch."""
        firsts, furthest = self._epochs.get(leader_epoch, ((), ()))
        number = bisect_right(firsts, offset)
        if not number or furthest[number - 1][0] < offset:
            return None
        return self.segments[furthest[number - 1][1]]

    def _ranges(self) -> Mapping[int, list[tuple[int, int, str]]]:
        ranges: dict[int, list[tuple[int, int, str]]] = {}
        for one in self.segments.values():
            if one.is_readable:
                for epoch, first, last in one.metadata.epoch_ranges():
                    ranges.setdefault(epoch, []).append((first, last, one.segment_id))
        return ranges


def _furthest(ranges: list[tuple[int, int, str]]) -> tuple[Sequence[int], Sequence[tuple[int, str]]]:
    """First offsets, rising; and of the segments up to each of them, the last offset that one reaches, and which."""
    ranges.sort()
    return [first for first, _, _ in ranges], list(accumulate(((last, one) for _, last, one in ranges), max))


NO_WAL = WalPartition()
"""What is known of a partition without events."""


class ReplayedWal:
    """The state after all events that were taken; what was deleted is remembered too."""

    def __init__(self, events: WalEvents) -> None:
        self.events = events
        self.partitions = list(events.partitions)
        """Every user partition that an event named, by the numbers that columns have."""
        of_segments = list(replayed_buckets(events.segments))
        of_combined = [replayed_events(bucket, PartitionRemovals((), 1)) for bucket in events.combined]
        self._refused = [joined_refused([one.refused for one in many]) for many in (of_segments, of_combined)]
        self.segments: SegmentRows = _begun([one.segments for one in of_segments])
        """A row for each segment of each partition."""
        self.combined: SegmentRows = _begun([one.segments for one in of_combined])
        """A row for each combined object."""

    @property
    def refused(self) -> list[RefusedWalEvent]:
        """The events that the state machine did not take, by metadata partition, then offset."""
        return sorted(one for refused in self._refused for one in _refused(refused))

    def partition(self, partition: TopicIdPartition) -> WalPartition:
        """What readers of one partition know."""
        number = self.events.partitions.get(partition)
        if number is None:
            return NO_WAL
        rows = self.rows_of(number)
        known_rows = rows[self.segments.are_known[rows]]
        return WalPartition(self.segments_at(known_rows))

    def rows_of(self, number: int) -> Ints:
        """The segments of the partition with a number."""
        order, bounds = self._by_partition
        return order[bounds[number] : bounds[number + 1]]

    def segments_at(self, rows: Ints) -> Iterator[KnownWalSegment]:
        """Some segments as of their last events."""
        objects, starts, ends = self.places(rows)
        columns = zip(
            known_segments(self.events.segments, self.segments.at(rows)),
            self._last_values(rows, "leader_epochs").tolist(),
            objects.texts(),
            self._last_values(rows, "coordinators").tolist(),
            starts.tolist(),
            ends.tolist(),
            strict=True,
        )
        return (KnownWalSegment(segment, *placed) for (_, segment), *placed in columns)

    def places(self, rows: Ints) -> tuple[UuidColumns, Ints, Ints]:
        """In which objects some segments are, and their file positions there, by their last events."""
        are_started = self.segments.states[rows] == _STARTED
        lasts = self.segments.lasts[rows]
        ids = UuidColumns(np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64))
        for which, placements in ((are_started, self.events.started), (~are_started, self.events.updated)):
            objects = placements.objects.at(lasts[which])
            ids.high[which], ids.low[which] = objects.high, objects.low
        starts, ends = (
            _of_either(are_started, lasts, *(getattr(one.ranges, side).values for one in self._placements))
            for side in ("starts", "ends")
        )
        return ids, starts, ends

    @cached_property
    def are_cleaned(self) -> Flags:
        """Whether a cleaner deletes or deleted what was uploaded of each segment, as `KnownWalSegment.is_cleaned`."""
        rows = np.arange(len(self.segments))
        _, starts, _ = self.places(rows)
        are_cleaned: Flags = self.segments.states >= RemoteLogSegmentState.DELETE_SEGMENT_STARTED
        are_cleaned &= (self._last_values(rows, "leader_epochs") == NO_LEADER) & (starts >= 0)
        return are_cleaned

    def combined_named(self, combined_segment_id: str) -> KnownCombined | None:
        """One combined object, where there are events about it."""
        ids, _ = uuids_of_texts([combined_segment_id])
        rows = self.combined_rows(ids)
        known_rows = rows[rows != NOT_FOUND]
        return next(self.combined_at(known_rows)) if len(known_rows) else None

    def segments_in(self, combined_segment_id: str) -> list[KnownWalSegment]:
        """The segments whose last events say that they are in a combined object, whatever their state."""
        order, firsts, lookup = self._by_object
        ids, _ = uuids_of_texts([combined_segment_id])
        row = lookup.rows_of(ids)
        if not len(row) or row[0] == NOT_FOUND:
            return []
        return list(self.segments_at(order[firsts[row[0]] : firsts[row[0] + 1]]))

    def combined_rows(self, ids: UuidColumns) -> Ints:
        """The row of each combined object; NOT_FOUND where there are no events about it."""
        return self._combined_lookup.rows_of(ids)

    def segment_rows(self, ids: UuidColumns, partitions: Ints) -> Ints:
        """The row of each segment of a partition, by number; NOT_FOUND where there are no events about it."""
        rows = self._segment_lookup.rows_of(_of_partition(ids, partitions))
        with_events = np.flatnonzero(rows != NOT_FOUND)
        own = self.segments.at(rows[with_events])
        rows[with_events[~own.segment_ids.equal(ids.at(with_events)) | (own.partitions != partitions[with_events])]] = (
            NOT_FOUND
        )
        return rows

    def combined_at(self, rows: Ints) -> Iterator[KnownCombined]:
        """Some combined objects as of their last events."""
        some, contents = self.combined.at(rows), self.events.combined_contents
        entry_rows, owners = contents.entries.rows_of(some.lasts)
        bounds = np.searchsorted(owners, np.arange(len(rows) + 1))
        entries = [
            RemoteLogSegmentMetadataEntry(
                topic_id_partition=self.partitions[number],
                segment_id=segment_id,
                start_file_position=start,
                end_file_position=end,
            )
            for number, segment_id, start, end in zip(
                contents.entries.partitions.values[entry_rows].tolist(),
                contents.entries.segment_ids.at(entry_rows).texts(),
                contents.entries.ranges.starts.values[entry_rows].tolist(),
                contents.entries.ranges.ends.values[entry_rows].tolist(),
                strict=True,
            )
        ]
        columns = zip(
            some.segment_ids.texts(),
            contents.broker_ids.values[some.lasts].tolist(),
            contents.event_timestamps.values[some.lasts].tolist(),
            contents.customs.of(some.lasts),
            some.states.tolist(),
            some.metadata_partitions.tolist(),
            some.metadata_offsets.tolist(),
            strict=True,
        )
        for row, (combined_id, broker_id, timestamp_ms, custom, state, partition, offset) in enumerate(columns):
            metadata = RemoteWalCombinedLogSegmentMetadata(
                combined_segment_id=combined_id,
                entries=tuple(entries[bounds[row] : bounds[row + 1]]),
                broker_id=broker_id,
                event_timestamp_ms=timestamp_ms,
                state=_STATES[state],
                custom_metadata=custom,
            )
            yield KnownCombined(metadata, partition, offset)

    @property
    def _placements(self) -> tuple[Placements, Placements]:
        return self.events.started, self.events.updated

    def _last_values(self, rows: Ints, name: str) -> Ints:
        are_started = self.segments.states[rows] == _STARTED
        columns = (getattr(one, name).values for one in self._placements)
        return _of_either(are_started, self.segments.lasts[rows], *columns)

    @cached_property
    def _by_partition(self) -> tuple[Ints, Ints]:
        counts = np.bincount(self.segments.partitions, minlength=len(self.partitions))
        order: Ints = np.argsort(self.segments.partitions, kind="stable")
        return order, np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def _by_object(self) -> tuple[Ints, Ints, UuidLookup]:
        """The segments by object, where those of each object begin, and which object is which."""
        order, ids = grouped(self.places(np.arange(len(self.segments)))[0])
        firsts = np.flatnonzero(ids.changes()) if len(ids) else order
        return order, np.append(firsts, len(order)), UuidLookup(ids.at(firsts))

    @cached_property
    def _combined_lookup(self) -> UuidLookup:
        return UuidLookup(self.combined.segment_ids)

    @cached_property
    def _segment_lookup(self) -> UuidLookup:
        return UuidLookup(_of_partition(self.segments.segment_ids, self.segments.partitions))


def _of_partition(ids: UuidColumns, partitions: Rows) -> UuidColumns:
    """Ids that differ between partitions, too: nothing keeps two from having the same."""
    mixed = UuidColumns(partitions.astype(np.uint64), np.zeros(len(ids), np.uint64)).hashes()
    return UuidColumns(ids.high, ids.low ^ mixed)


def _begun(parts: list[SegmentRows]) -> SegmentRows:
    """The segments whose upload was begun."""
    rows = joined_rows(parts)
    return rows.at(np.flatnonzero(rows.states != NO_STATE))


def _refused(refused: RefusedEvents) -> Iterator[RefusedWalEvent]:
    events = refused.events
    columns = zip(
        events.metadata_partitions.tolist(),
        events.metadata_offsets.tolist(),
        events.segment_ids.texts(),
        events.starts.tolist(),
        refused.before.tolist(),
        events.states.tolist(),
        strict=True,
    )
    for metadata_partition, offset, one, starts, number, state in columns:
        before, after = state_known(number), _STATES[state]
        refusal = start_refusal(before, after) if starts else update_refusal(before, after)
        if refusal is not None:
            yield RefusedWalEvent(metadata_partition, offset, one, before, after, refusal)


def _of_either(are_started: Flags, rows: Rows, started: Rows, updated: Rows) -> Ints:
    values = np.empty(len(rows), np.int64)
    values[are_started] = started[rows[are_started]]
    values[~are_started] = updated[rows[~are_started]]
    return values

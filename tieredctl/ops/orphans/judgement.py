"""Which segment owns an object? The rules in order; the first that fits decides.

1. No layout explains the key, or what metadata says of the segment contradicts it: unknown.
2. Its topic id was never known: foreign; or unknown, if metadata that is not here may know it: in a metadata partition
   that was not read, or, unless its topic is known to be gone, in metadata that was lost (rule 5).
3. A broker may read its segment: owned. This covers a copy that another displaced, which is Kafka's to delete.
4. It is younger than the age floor: in progress. What tieredctl put back is as old as it was before.
5. Metadata never named its segment. Brokers write an event before each copy, so its event is still to come, or was
   lost. In progress if the object is newer, by its store, than all that was read. Unknown if it is older than the
   metadata of its partition, or if the metadata is not whole. An orphan if its topic or partition is gone, or if
   finished copies prove that its records are elsewhere (`copied_offsets`). Else unknown: it may be their only copy.
6. Otherwise the segment's last state tells. A copy that began and did not end may still end, or its end may be lost,
   unless another of the same offsets began later and finished copies hold all of them, or its topic is gone. Where
   events may be gone from the log, it may have ended.

Where events may be gone, what has none here counts as what may have some in metadata that was not read.

Every fact that the rules ask for is true or false, or a state: the rules decide each combination of facts once, and an
object's facts are the number of its combination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import NOT_FOUND
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState as State
from tieredctl.model.ownership import InProgressReason, ObjectStatus, OrphanCause, UnknownReason
from tieredctl.ops.cluster.live_topics import LiveTopics
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.object_columns import NO_PARTITION, KnownOwners, ObjectColumns, object_columns
from tieredctl.ops.orphans.segment_states import SegmentStates
from tieredctl.ops.remote.key_columns import offsets_agree
from tieredctl.ports.layout import Layout
from tieredctl.rlmm.segment_rows import NO_STATE

NO_SEGMENT = NOT_FOUND
_STATUSES = tuple(ObjectStatus)
_WHYS = (None, *OrphanCause, *UnknownReason, *InProgressReason)
_REASONS = (UnknownReason, InProgressReason)
_Facts = NDArray[np.uint16]
_STATE_SHIFT = 12


class _Fact(IntFlag):
    """Facts about an object, as bits; above them is its segment's state, NO_STATE where it has none."""

    EXPLAINED = 1
    KNOWN_TOPIC = 1 << 1
    NAMED = 1 << 2
    """Metadata names its segment,"""
    AGREES = 1 << 3
    """and gives it the partition and the offset that the key does."""
    SUPERSEDED = 1 << 4
    TOPIC_GONE = 1 << 5
    """The cluster is known not to have its topic."""
    PARTITION_REMOVED = 1 << 6
    YOUNG = 1 << 7
    UNREAD = 1 << 8
    """It is newer than all metadata that was read."""
    ELSEWHERE = 1 << 9
    """Its partition may have its events in a metadata partition that was not read."""
    BEFORE = 1 << 10
    """It is older than the metadata of its partition."""
    COPIED = 1 << 11
    """Metadata does not name its segment, but proves that its records are elsewhere."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A verdict for each object, and which row of the segments it was judged by (NO_SEGMENT: none)."""

    codes: NDArray[np.int8]
    """What `verdict_of` takes."""
    segments: Ints
    modified_ms: Ints
    """Since when the store has had the bytes: its own time, or the one before, of what looks young and was put back."""

    @property
    def are_orphans(self) -> Flags:
        orphans: Flags = self.codes // len(_WHYS) == _STATUSES.index(ObjectStatus.ORPHAN)
        return orphans

    def in_progress_at(self, rows: Ints) -> Verdicts:
        """The verdicts with some rows in progress instead."""
        codes = self.codes.copy()
        codes[rows] = _STATUSES.index(ObjectStatus.IN_PROGRESS) * len(_WHYS)
        return Verdicts(codes, self.segments, self.modified_ms)

    def at(self, rows: Ints) -> Verdicts:
        """Some of the rows."""
        return Verdicts(self.codes[rows], self.segments[rows], self.modified_ms[rows])


def verdict_of(code: int) -> tuple[ObjectStatus, OrphanCause | None]:
    """A verdict by its number."""
    why = _WHYS[code % len(_WHYS)]
    return _STATUSES[code // len(_WHYS)], why if isinstance(why, OrphanCause) else None


def verdict_of_younger(modified_ms: int, floor_ms: int) -> tuple[ObjectStatus, InProgressReason | None]:
    """The verdict on what looked orphaned and was modified since it was listed, at a time; above the floor it is too
    young."""
    if modified_ms > floor_ms:
        return ObjectStatus.IN_PROGRESS, InProgressReason.YOUNGER_THAN_MIN_AGE
    return ObjectStatus.UNKNOWN, None


def reason_of(code: int) -> UnknownReason | InProgressReason | None:
    """Why an object with this verdict is unknown or in progress, where there is a reason to tell."""
    why = _WHYS[code % len(_WHYS)]
    return why if isinstance(why, _REASONS) else None


@dataclass(frozen=True, slots=True)
class Certainty:
    """How far the metadata that was read may be believed to be all there is."""

    is_whole: bool
    """Whether every event could be read."""
    partitions_are_sure: bool
    """Whether a partition without events has none in any metadata partition that is not here either."""
    events_may_be_gone: bool
    """Whether some may be missing from the middle of the logs that were read, as after compaction."""

    @classmethod
    def of(cls, stream: EventStream) -> Certainty:
        """Completeness of a stream that was read to its end."""
        return cls(is_whole(stream.findings), stream.coverage.is_certain, bool(stream.compaction.shown))


@dataclass(frozen=True)
class Judge:
    """What objects are judged by. Times in ms."""

    segments: SegmentStates
    now_ms: int
    min_age_ms: int
    live_topics: LiveTopics
    certainty: Certainty
    original_times: OriginalTimes = NO_ORIGINAL_TIMES
    """The original times of what was put back. Whether metadata may not have come to an object yet, the store's time
    alone tells: who put it back may have known of events that were not read."""
    has_times: bool = True
    """Whether times are those of the objects: without them, each may be older than the metadata."""

    def judge(self, objects: ObjectColumns) -> Verdicts:
        """The verdicts on a listing's objects."""
        segments, explained, times = self.segments, objects.said, objects.last_modified_ms
        rows = segments.rows.rows_of(explained.named_segments)
        of_names, owners = self._of_names(rows, explained.named_offsets)
        facts = of_names[explained.names] | self._of_partitions[objects.partitions]
        facts |= _where(objects.is_explained, _Fact.EXPLAINED)
        facts |= _where(objects.known_topic, _Fact.KNOWN_TOPIC)
        facts |= _where(objects.absent_topic, _Fact.TOPIC_GONE)
        modified_ms = self._modified_ms(objects)
        facts |= _where(modified_ms > self._floor_ms, _Fact.YOUNG)
        if not self._has_no_metadata:
            facts |= _where(times > segments.last_timestamp_ms, _Fact.UNREAD)
        facts |= _where(modified_ms - clocks_may_differ_ms(self.min_age_ms) < objects.metadata_begins_ms, _Fact.BEFORE)
        self._add_copied(facts, objects, modified_ms)
        facts &= ~_where(owners[explained.names] != objects.partitions, _Fact.AGREES)
        segment_rows = np.where(objects.is_explained, rows[explained.names], NO_SEGMENT)
        return Verdicts(self._verdicts[facts], segment_rows, modified_ms)

    def code_of_younger(self, modified_ms: int) -> int:
        """The verdict on what looked orphaned and was modified since it was listed: its owner is unknown."""
        status, reason = verdict_of_younger(modified_ms, self._floor_ms)
        return _STATUSES.index(status) * len(_WHYS) + _WHYS.index(reason)

    @property
    def _floor_ms(self) -> int:
        return self.now_ms - self.min_age_ms

    @property
    def _has_no_metadata(self) -> bool:
        """Whether no record was read at all: nothing is newer than that, and whatever there is may have been lost."""
        return self.segments.last_timestamp_ms < 0

    def _add_copied(self, facts: _Facts, objects: ObjectColumns, modified_ms: Ints) -> None:
        explained, rows = objects.said, np.flatnonzero(facts & np.uint16(_Fact.NAMED) == 0)
        start_offsets = explained.named_offsets[explained.names[rows]]
        latest_ms = modified_ms[rows] + clocks_may_differ_ms(self.min_age_ms)
        held = self.segments.copied.hold(objects.partitions[rows], start_offsets, latest_ms)
        facts[rows] |= _where(held, _Fact.COPIED)

    def _modified_ms(self, objects: ObjectColumns) -> Ints:
        look_young: Flags = objects.last_modified_ms > self._floor_ms
        sizes, times = objects.sizes, objects.last_modified_ms
        return self.original_times.of_columns(objects.keys, sizes, times, objects.versions, look_young)

    def _of_names(self, rows: Ints, start_offsets: Ints) -> tuple[_Facts, Ints]:
        """The facts about some segments by what file names say, AGREES if they agree about the offset; and whose they
        are."""
        segments = self.segments
        facts = np.full(len(rows), NO_STATE << _STATE_SHIFT, np.uint16)
        owners = np.full(len(rows), NO_PARTITION, np.int64)
        named = np.flatnonzero(rows != NO_SEGMENT)
        rows = rows[named]
        facts[named] = (
            segments.states[rows].astype(np.uint16) << _STATE_SHIFT
            | _where(segments.superseded[rows], _Fact.SUPERSEDED)
            | _where(offsets_agree(start_offsets[named], segments.start_offsets[rows]), _Fact.AGREES)
            | np.uint16(_Fact.NAMED)
        )
        owners[named] = segments.owners[rows]
        return facts, owners

    @cached_property
    def _of_partitions(self) -> _Facts:
        """The facts about each partition, then those about NO_PARTITION."""
        removed = self.segments.partition_deletes
        facts = [_Fact.PARTITION_REMOVED if number in removed else 0 for number in range(len(self.segments.partitions))]
        elsewhere = (
            0 if self.certainty.partitions_are_sure and not self.certainty.events_may_be_gone else _Fact.ELSEWHERE
        )
        return np.array([*facts, elsewhere], np.uint16)

    @cached_property
    def _verdicts(self) -> NDArray[np.int8]:
        """The verdict on every combination of facts."""
        facts = np.arange((NO_STATE + 1) << _STATE_SHIFT)
        states = facts >> _STATE_SHIFT

        def are(fact: _Fact) -> Flags:
            true: Flags = (facts & fact) != 0
            return true

        named, gone, removed = are(_Fact.NAMED), are(_Fact.TOPIC_GONE), are(_Fact.PARTITION_REMOVED)
        unfinished, finished = states == State.COPY_SEGMENT_STARTED, states == State.COPY_SEGMENT_FINISHED
        decided = _Decision(len(facts))
        decided.status(~are(_Fact.EXPLAINED), ObjectStatus.UNKNOWN)
        if self._has_no_metadata:
            decided.unknown(~are(_Fact.YOUNG) & ~gone, UnknownReason.OLDER_THAN_METADATA)
        decided.status(~are(_Fact.KNOWN_TOPIC) & are(_Fact.ELSEWHERE), ObjectStatus.UNKNOWN)
        is_lost = ~are(_Fact.KNOWN_TOPIC) & ~named & are(_Fact.BEFORE) & ~gone
        decided.unknown(is_lost, UnknownReason.OLDER_THAN_METADATA)
        decided.status(~are(_Fact.KNOWN_TOPIC), ObjectStatus.FOREIGN)
        decided.status(named & ((states == NO_STATE) | ~are(_Fact.AGREES)), ObjectStatus.UNKNOWN)
        decided.status(finished & ~gone & ~removed, ObjectStatus.OWNED)
        decided.in_progress(are(_Fact.YOUNG), InProgressReason.YOUNGER_THAN_MIN_AGE)
        decided.status(~named & are(_Fact.UNREAD), ObjectStatus.IN_PROGRESS)
        decided.status(~named & are(_Fact.ELSEWHERE), ObjectStatus.UNKNOWN)
        decided.unknown(~named & are(_Fact.BEFORE), UnknownReason.OLDER_THAN_METADATA)
        if not (self.certainty.is_whole and self.has_times) or self.certainty.events_may_be_gone:
            decided.status(~named, ObjectStatus.UNKNOWN)
        if self.certainty.events_may_be_gone:
            decided.status(unfinished & ~gone, ObjectStatus.UNKNOWN)
        decided.orphan(~named & gone, OrphanCause.TOPIC_GONE)
        decided.orphan(~named & removed, OrphanCause.PARTITION_GONE)
        decided.orphan(~named & are(_Fact.COPIED), OrphanCause.NO_METADATA)
        decided.unknown(~named, UnknownReason.NOT_COVERED)
        decided.orphan(finished & gone, OrphanCause.TOPIC_GONE)
        decided.orphan(finished & removed, OrphanCause.PARTITION_GONE)
        decided.orphan(states == State.DELETE_SEGMENT_STARTED, OrphanCause.DELETE_NEVER_FINISHED)
        decided.orphan(states == State.DELETE_SEGMENT_FINISHED, OrphanCause.DELETED_BUT_PRESENT)
        decided.orphan(unfinished & (are(_Fact.SUPERSEDED) | gone), OrphanCause.COPY_NEVER_FINISHED)
        decided.status(unfinished, ObjectStatus.IN_PROGRESS)
        return decided.verdicts()


def clocks_may_differ_ms(min_age_ms: int) -> int:
    """By how much the store's clock and a broker's may differ, unless no age is asked for at all."""
    return min(min_age_ms, MOST_SKEW_MS)


def judged_objects(
    judge: Judge, owners: KnownOwners, batches: Iterable[pa.RecordBatch], layout: Layout
) -> Iterator[tuple[ObjectColumns, Verdicts]]:
    """Batches of a listing's objects, each with the verdicts on them."""
    for objects in object_columns(batches, layout, owners):
        yield objects, judge.judge(objects)


class _Decision:
    """The first rule that fits a row decides it."""

    def __init__(self, rows: int) -> None:
        self._open = np.ones(rows, np.bool_)
        self._statuses = np.full(rows, _STATUSES.index(ObjectStatus.UNKNOWN), np.int8)
        self._whys = np.zeros(rows, np.int8)

    def status(self, which: Flags, status: ObjectStatus) -> None:
        which = which & self._open
        self._statuses[which] = _STATUSES.index(status)
        self._open &= ~which

    def orphan(self, which: Flags, cause: OrphanCause) -> None:
        self._whys[which & self._open] = _WHYS.index(cause)
        self.status(which, ObjectStatus.ORPHAN)

    def unknown(self, which: Flags, reason: UnknownReason) -> None:
        self._whys[which & self._open] = _WHYS.index(reason)
        self.status(which, ObjectStatus.UNKNOWN)

    def in_progress(self, which: Flags, reason: InProgressReason) -> None:
        self._whys[which & self._open] = _WHYS.index(reason)
        self.status(which, ObjectStatus.IN_PROGRESS)

    def verdicts(self) -> NDArray[np.int8]:
        """What `verdict_of` takes, a row each."""
        return self._statuses * np.int8(len(_WHYS)) + self._whys


def _where(flags: Flags, fact: _Fact) -> _Facts:
    """A fact, set in the rows where it is true."""
    return flags.astype(np.uint16) * np.uint16(fact)

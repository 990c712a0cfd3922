"""When a combined object may go (KIP-1176, "Life Cycle of the active log segments on the cloud storage"); by columns.

The proposal lets an object go when KIP-405's tier has every segment in it, and in any case after the greatest
local.retention.ms of its topics, because by then "they are assumed to be uploaded". Assumed is not known: what is past
that time and is not in remote storage is OVERDUE, and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import (
    NOT_FOUND,
    UuidColumns,
    UuidLookup,
    UuidSet,
    grouped,
    joined_uuids,
    uuids_of_texts,
)
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl_proposals.wal.replayed import ReplayedWal
from tieredctl_proposals.wal.tiered_ranges import TieredRanges, epoch_ranges

_FOREVER = np.iinfo(np.int64).max
_UNKNOWN_OFFSET = -1


class Need(IntEnum):
    """Whether a segment in a combined object is still needed there, and why; an object's need is its neediest's."""

    DELETED = 0
    """A leader deleted it, or announced that; or a cleaner, before it was uploaded."""
    ELSEWHERE = 1
    """It was uploaded again, in another object."""
    OF_FORMER_LEADER = 2
    """A leader of the past announced it, and no reader takes its events; its upload was given up."""
    TIERED = 3
    """Remote storage has all of its records."""
    BELOW_LOG_START = 4
    PARTITION_GONE = 5
    PAST_RETENTION = 6
    """Its topic is not tiered by KIP-405, and its retention is over."""
    NEVER_FINISHED = 7
    """Its upload was given up: nothing can be reported as uploaded once its deletion is announced."""
    OVERDUE = 8
    """Past the greatest local.retention.ms of the object's topics, and not in remote storage: the proposal would have
    lost it."""
    NEEDED = 9
    IN_PROGRESS = 10
    """Its upload may still finish."""
    UNKNOWN = 11
    """No event is left that says anything of it or of its object, or it is of a topic that this cluster never had."""

    @property
    def may_go(self) -> bool:
        return self < Need.OVERDUE


class PartitionFacts(NamedTuple):
    """What is known of a user partition; None for what is not."""

    log_start_offset: int | None = None
    is_gone: bool = False
    is_foreign: bool = False
    """Whether nothing proves that the cluster ever had it."""
    is_tiered: bool | None = None
    """Whether remote.storage.enable is set."""
    local_retention_ms: int | None = None
    """The topic's local.retention.ms, with -2 resolved: without KIP-405 it is retention.ms; -1 for no limit."""


@dataclass(frozen=True, slots=True)
class JudgedObject:
    """A combined object, and each segment in it with whether it is needed."""

    combined_segment_id: str
    need: Need
    segments: tuple[tuple[TopicIdPartition, str, Need], ...]


@dataclass(frozen=True, slots=True)
class _Entries:
    """Segments in objects, one per row: object and partition by number, and the segment's id."""

    objects: Ints
    partitions: Ints
    segment_ids: UuidColumns
    needs: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class JudgedObjects:
    """Every combined object that an event names, one per row."""

    ids: UuidColumns
    needs: NDArray[np.int8]
    """The greatest Need of each."""
    entries: _Entries
    partitions: list[TopicIdPartition]
    are_deleted: Flags
    """Whether every segment that is in each is deleted, by its last event."""

    def __len__(self) -> int:
        return len(self.ids)

    def may_go(self) -> Ints:
        """The rows of the objects in which nothing is needed."""
        return np.flatnonzero(self.needs < Need.OVERDUE)

    def kept(self) -> dict[Need, int]:
        """How many of the others there are that are not deleted, by their needs."""
        counts = np.bincount(self.needs[~self.are_deleted], minlength=len(Need)).tolist()
        return {need: counts[need] for need in Need if counts[need] and not need.may_go}

    def objects(self, rows: Ints) -> Iterator[JudgedObject]:
        """Some of them."""
        order = np.argsort(self.entries.objects, kind="stable")
        bounds = np.searchsorted(self.entries.objects[order], np.stack([rows, rows + 1]))
        for row, text, first, end in zip(rows.tolist(), self.ids.at(rows).texts(), *bounds.tolist(), strict=True):
            inside = order[first:end]
            segment_rows = zip(
                self.entries.partitions[inside].tolist(),
                self.entries.segment_ids.at(inside).texts(),
                self.entries.needs[inside].tolist(),
                strict=True,
            )
            segments = tuple((self.partitions[number], one, Need(need)) for number, one, need in segment_rows)
            yield JudgedObject(text, Need(int(self.needs[row])), segments)


def judge_objects(
    wal: ReplayedWal,
    tiered: TieredRanges,
    facts: Mapping[TopicIdPartition, PartitionFacts],
    *,
    now_ms: int,
    give_up_after_ms: int,
) -> JudgedObjects:
    """Whether each object is needed. `tiered` has partitions by their numbers in `wal`; an upload that had no event for
    `give_up_after_ms` counts as given up. Of a partition that has no facts, nothing is known. What a cleaner deletes or
    deleted is judged as if it had not: the reasons have to hold."""
    places, _, _ = wal.places(np.arange(len(wal.segments)))
    ids = _distinct(joined_uuids([wal.combined.segment_ids, places]))
    lookup = UuidLookup(ids)
    of_segments = lookup.rows_of(places)
    facts_of_partitions = [facts.get(partition, PartitionFacts()) for partition in wal.partitions]
    ages = _Ages(wal, of_segments, len(ids), facts_of_partitions, now_ms)
    needs = _needs(wal, tiered, facts_of_partitions, ages, give_up_after_ms)
    listed = _listed(wal, lookup, places, given_up_ms=now_ms - give_up_after_ms)
    entries = _Entries(
        np.concatenate([of_segments, listed.objects]),
        np.concatenate([wal.segments.partitions.astype(np.int64), listed.partitions]),
        joined_uuids([wal.segments.segment_ids, listed.segment_ids]),
        np.concatenate([needs, listed.needs]),
    )
    greatest = np.zeros(len(ids), np.int8)
    np.maximum.at(greatest, entries.objects, entries.needs)
    greatest[_with_unknown_contents(lookup.rows_of(wal.combined.segment_ids), entries, len(ids))] = Need.UNKNOWN
    are_deleted = np.zeros(len(ids), np.bool_)
    are_deleted[of_segments] = True
    are_deleted[of_segments[wal.segments.states != RemoteLogSegmentState.DELETE_SEGMENT_FINISHED]] = False
    return JudgedObjects(ids, greatest, entries, wal.partitions, are_deleted)


def _with_unknown_contents(with_own: Ints, entries: _Entries, objects: int) -> Flags:
    """Objects that no event of their own lists the segments of: others than those that are known may be in them. An
    upload that stopped before that event has stored nothing."""
    has_own = np.zeros(objects, np.bool_)
    has_own[with_own] = True
    is_uploaded = np.zeros(objects, np.bool_)
    begun = np.isin(entries.needs, (Need.DELETED, Need.NEVER_FINISHED, Need.IN_PROGRESS))
    is_uploaded[entries.objects[~begun]] = True
    return ~has_own & is_uploaded


class _Ages:
    """How old segments and objects are, by the later of events and records, and how old they may get."""

    def __init__(
        self,
        wal: ReplayedWal,
        of_segments: Ints,
        objects: int,
        facts: Sequence[PartitionFacts],
        now_ms: int,
    ) -> None:
        contents = wal.events.segments.contents
        segments = wal.segments
        times = np.maximum(
            contents.event_timestamps(segments.states == RemoteLogSegmentState.COPY_SEGMENT_STARTED, segments.lasts),
            contents.starts.said.event_timestamps.values[segments.starts],
        )
        self.since_last_event: Ints = now_ms - times
        # A cleaner's announcement makes nothing younger.
        uploaded = np.where(wal.are_cleaned, contents.starts.said.event_timestamps.values[segments.starts], times)
        records = np.maximum(uploaded, contents.starts.max_timestamps.values[segments.starts])
        limits = np.array([_limit(one.local_retention_ms) for one in facts], np.int64)[segments.partitions]
        self.are_past_own: Flags = now_ms - records > limits
        latest = np.full(objects, np.iinfo(np.int64).min)
        np.maximum.at(latest, of_segments, records)
        greatest = np.zeros(objects, np.int64)
        np.maximum.at(greatest, of_segments, limits)
        self.are_past_greatest: Flags = (now_ms - latest[of_segments]) > greatest[of_segments]


def _limit(retention_ms: int | None) -> int:
    return _FOREVER if retention_ms is None or retention_ms < 0 else retention_ms


def _needs(
    wal: ReplayedWal,
    tiered: TieredRanges,
    facts: Sequence[PartitionFacts],
    ages: _Ages,
    give_up_after_ms: int,
) -> NDArray[np.int8]:
    """The need for each segment; later lines overrule earlier ones."""
    segments = wal.segments
    owners = segments.partitions
    are_tiered_topics, are_local_topics, are_gone, are_foreign = (
        np.array(flags, np.bool_)[owners]
        for flags in (
            [one.is_tiered is True for one in facts],
            [one.is_tiered is False for one in facts],
            [one.is_gone for one in facts],
            [one.is_foreign for one in facts],
        )
    )
    starts = [_UNKNOWN_OFFSET if one.log_start_offset is None else one.log_start_offset for one in facts]
    log_starts = np.array(starts, np.int64)[owners]
    is_state = {state: segments.states == state for state in RemoteLogSegmentState}
    needs = np.full(len(segments), Need.NEEDED, np.int8)
    needs[ages.are_past_greatest & are_tiered_topics] = Need.OVERDUE
    needs[ages.are_past_own & are_local_topics] = Need.PAST_RETENTION
    contents = wal.events.segments.contents.starts
    needs[_covered(wal, tiered)] = Need.TIERED
    needs[contents.end_offsets.values[segments.starts] < log_starts] = Need.BELOW_LOG_START
    begun = is_state[RemoteLogSegmentState.COPY_SEGMENT_STARTED]
    needs[begun] = Need.IN_PROGRESS
    needs[begun & (ages.since_last_event > give_up_after_ms)] = Need.NEVER_FINISHED
    needs[are_gone] = Need.PARTITION_GONE
    needs[are_foreign] = Need.UNKNOWN
    deleted = is_state[RemoteLogSegmentState.DELETE_SEGMENT_STARTED]
    deleted |= is_state[RemoteLogSegmentState.DELETE_SEGMENT_FINISHED]
    needs[deleted & ~wal.are_cleaned] = Need.DELETED
    return needs


def _covered(wal: ReplayedWal, tiered: TieredRanges) -> Flags:
    """Flags the segments whose records are all in remote storage, under the leader epochs that they have here."""
    segments = wal.segments
    epochs = wal.events.segments.contents.starts.epoch_ranges(segments.starts)
    covered = tiered.cover(epoch_ranges(epochs, segments.partitions.astype(np.int64)))
    owners = np.repeat(np.arange(len(segments)), np.diff(epochs.bounds))
    all_covered = np.ones(len(segments), np.bool_)
    all_covered[owners[~covered]] = False
    return all_covered


def _listed(wal: ReplayedWal, lookup: UuidLookup, places: UuidColumns, *, given_up_ms: int) -> _Entries:
    """The segments that objects list, and that do not say themselves that they are there. Of an object without an event
    since `given_up_ms` no upload goes on."""
    contents = wal.events.combined_contents.entries
    rows, owners = contents.rows_of(wal.combined.lasts)
    objects = lookup.rows_of(wal.combined.segment_ids)[owners]
    ids, partitions = contents.segment_ids.at(rows), contents.partitions.values[rows].astype(np.int64)
    rows_of_segments = wal.segment_rows(ids, partitions)
    is_known = rows_of_segments != NOT_FOUND
    here = np.zeros(len(rows), np.bool_)
    here[is_known] = lookup.rows_of(places.at(rows_of_segments[is_known])) == objects[is_known]
    stale, _ = uuids_of_texts(sorted({one.segment_id for one in wal.events.stale}))
    needs = np.full(len(rows), Need.UNKNOWN, np.int8)
    if len(stale):
        are_stale = UuidSet(stale).has(ids)
        needs[are_stale] = Need.IN_PROGRESS
        last_events = wal.events.combined_contents.event_timestamps.values[wal.combined.lasts][owners]
        needs[are_stale & (last_events < given_up_ms)] = Need.OF_FORMER_LEADER
    needs[is_known] = Need.ELSEWHERE
    rest = np.flatnonzero(~here)
    return _Entries(objects[rest], partitions[rest], ids.at(rest), needs[rest])


def _distinct(ids: UuidColumns) -> UuidColumns:
    if not len(ids):
        return ids
    _, ids = grouped(ids)
    return ids.at(np.flatnonzero(ids.changes()))

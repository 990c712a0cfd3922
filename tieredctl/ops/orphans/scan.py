"""`orphans scan`: which segment owns each object of a store?

The store is listed first, then the metadata is read, to its end offsets of a moment after the listing: whatever had an
owner while it was listed has it still in what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import distinct_numbers, numbers_in
from tieredctl.formats.uuid_columns import NOT_FOUND
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_text
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.cluster.live_topics import (
    NO_TOPIC_SOURCES,
    KnownTopics,
    LiveTopics,
    TopicSources,
    demand_believable,
    live_topics,
)
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes, read_original_times
from tieredctl.ops.guards.own_objects import TIMES_OF_RESTORED
from tieredctl.ops.metadata.completeness import demand_whole, lost_between
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.judgement import (
    NO_SEGMENT,
    Certainty,
    Judge,
    Verdicts,
    judged_objects,
    reason_of,
    verdict_of,
)
from tieredctl.ops.orphans.object_columns import KnownOwners, MetadataBegins, ObjectColumns, selected_rows
from tieredctl.ops.orphans.overlap import demand_any_explained, demand_any_object, demand_any_told
from tieredctl.ops.orphans.promised_segments import PromisedSegments, listing_was_short, promised_objects_missing
from tieredctl.ops.orphans.reserved import UnreservedObjects
from tieredctl.ops.orphans.segment_states import SegmentStates, segment_states
from tieredctl.ops.orphans.still_there import still_there
from tieredctl.ops.orphans.totals import Group, GroupTotals, ScanTotals
from tieredctl.ops.remote.inventory import ListedObject, iso_8601, object_document
from tieredctl.ops.remote.listing import Listing
from tieredctl.ports.layout import ExplainedKey, Layout
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.process.progress import note_more
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import NO_STATE


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to judge. Times in ms."""

    now_ms: int
    min_age_ms: int
    topic_sources: TopicSources = NO_TOPIC_SOURCES
    selection: Selection = Selection()
    price: StoragePrice | None = None
    """What storing costs; None where that is not known."""
    has_times: bool = True
    """Whether the listing says when each object was modified; else each was there at that time, and may be older."""
    key: bytes | None = None
    """The key that sealed the notes of objects' ages; None where no notes are used."""


@dataclass(slots=True)
class Scan:
    """A scan that runs while its documents are read."""

    listing: Listing
    layout: Layout
    subject: str
    """The findings' subject: the store."""
    read_metadata: Callable[[], EventStream]
    """Opens the metadata, up to its end offsets of the moment; called after the store was listed."""
    options: ScanOptions
    store: ObjectStore | None = None
    """Where what looks orphaned is asked for again: who deleted it may have been at work since the listing. None where
    the listing is of no store that can be asked."""
    is_listed_now: bool = False
    """Whether that was listed from its beginning after `now_ms`."""
    is_told: bool = False
    """Whether an inventory or a list of keys tells what the store has: it may be of another place."""
    gone: int = 0
    """How many objects looked orphaned, but no longer exist."""
    stream: EventStream | None = None
    """The metadata, once it was opened."""
    live_topics: LiveTopics | None = None
    """Which topics exist, once the metadata was read."""
    judge: Judge | None = None
    """What objects are judged by, and `known` whose they may be, once the metadata was read."""
    known: KnownOwners | None = None
    promised: PromisedSegments | None = None
    """What of the promised objects is listed, once the metadata was read; None for a list of keys alone."""
    is_doubted: bool = False
    """Whether promised objects are missing, so that what looks orphaned may be these, or were not listed."""
    unreserved: UnreservedObjects | None = None
    """The objects of the listing, once it was made."""
    lists_all: bool = True
    """Whether all objects have documents, or orphans alone."""
    groups: dict[Group, GroupTotals] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    """What was odd about the metadata, and one finding for each cause of orphans; there when the last document was
    read."""

    def documents(self) -> Iterator[Document]:
        """Every object that was selected, or every orphan, in the order of the listing, with its verdict and the
        evidence for it."""
        for judge, objects, verdicts in self.judged():
            codes = verdicts.codes.tolist()
            rows = self.selected(objects)
            for row in (rows if self.lists_all else rows[verdicts.are_orphans[rows]]).tolist():
                yield self._document(judge, objects, verdicts, row, codes[row])
        self._doubt_orphans()

    def run(self) -> None:
        """Reads everything, only for the totals."""
        for _ in self.judged():
            pass
        self._doubt_orphans()

    def judged(self) -> Iterator[tuple[Judge, ObjectColumns, Verdicts]]:
        """All objects, many at a time, with their verdicts; those of no selection too, which are not counted."""
        with self.listing as listing:
            self.stream = stream = self.read_metadata()
            events = SegmentEvents()
            read_events(stream, events)
            moved = MovedSegments(self.read_metadata, stream)
            # Not before: what is asked about has to be older than the answer.
            known_of = (self.options.topic_sources, events.first_events_ms, stream.source, events.last_timestamp_ms)
            self.live_topics = live = live_topics(*known_of)
            self.judge = judge = self._judge(events, live, stream)
            begins = MetadataBegins.of(stream.coverage, events.first_records_ms)
            self.known = owners = KnownOwners(events.partitions, KnownTopics(events.first_events_ms, live), begins)
            if self.store is not None:
                self.promised = PromisedSegments(judge.segments, live, self.layout)
            self.unreserved = unreserved = UnreservedObjects(listing)
            has_any = has_explained = False
            for objects, judged in judged_objects(judge, owners, unreserved.batches(), self.layout):
                has_any |= len(objects.sizes) > 0
                has_explained |= bool(objects.is_explained.any())
                if self.promised is not None:
                    self.promised.take(objects, judged)
                there, verdicts = self._still_there(judge, moved, objects, judged)
                self._count(there, verdicts)
                note_more("objects judged", len(there.sizes))
                yield judge, there, verdicts
            if not has_any:
                self._demand_any(judge.segments.topics_with_segments(), live)
            elif not has_explained:
                demand_any_explained(self.subject, self.layout, judge.segments.topics_with_segments(), live)
        stream.findings += moved.lost
        incomplete = self.options.topic_sources.findings()
        self.findings += [*stream.findings, *incomplete, *self._totals.findings(self.subject)]

    def _demand_any(self, topics_with_segments: Iterable[str], live: LiveTopics) -> None:
        if self.is_told:
            if self.unreserved is None or not self.unreserved.passed_over:
                demand_any_told(self.subject, self.layout, topics_with_segments, live)
        elif self.store is not None:
            demand_any_object(self.store, self.layout, topics_with_segments, live, self.options.now_ms)

    def missing(self) -> list[str]:
        """The keys of objects that the metadata promises and the store lacks; none where no store can be asked. Raises
        TieredctlError `metadata-incomplete` where the metadata lost events meanwhile."""
        if self.promised is None or self.stream is None or self.store is None:
            return []
        later = list[EventStream]()

        def read() -> EventStream:
            later.append(self.read_metadata())
            return later[-1]

        missing = self.promised.missing(self.store, read, self.options.key)
        for stream in later:
            demand_whole(lost_between(self.stream, stream))
        return missing

    def _doubt_orphans(self) -> None:
        """What looks orphaned may be promised objects under other keys: what forbids a plan makes a scan incomplete. So
        does a listing that lacked what the store had."""
        if self.is_listed_now and self.promised and self.store and self.metadata_is_whole:
            passed_over = self.promised.passed_over(self.store, self.options.now_ms)
            if passed_over:
                self.is_doubted = True
                self.findings.append(listing_was_short(passed_over, self.subject))
        has_orphans = any(group.status is ObjectStatus.ORPHAN for group in self.groups)
        if has_orphans and self.metadata_is_whole and (missing := self.missing()):
            self.is_doubted = True
            self.findings.append(promised_objects_missing(missing, self.subject))

    def _still_there(
        self, judge: Judge, segments: MovedSegments, objects: ObjectColumns, verdicts: Verdicts
    ) -> tuple[ObjectColumns, Verdicts]:
        """All but the orphans that no longer exist; those that are younger than they were listed to be are none, and in
        progress are those whose segments go on meanwhile."""
        if self.store is None:
            return objects, verdicts
        orphans = np.flatnonzero(verdicts.are_orphans)
        orphans = orphans[np.isin(orphans, self.selected(objects))]
        # Before the objects are asked for: a broker writes that it deleted a segment once its objects are gone.
        named = orphans[verdicts.segments[orphans] != NO_SEGMENT]
        moved = named[segments.have_moved(judge.segments, verdicts.segments[named])]
        keys = [key_text(key) for key in objects.keys.take(pa.array(orphans)).to_pylist()]
        times: list[int] = objects.last_modified_ms[orphans].tolist()
        there = still_there(self.store, dict(zip(keys, times, strict=True)))
        verdicts = verdicts.in_progress_at(moved)
        if len(there.same) == len(keys):
            return objects, verdicts
        by_row = dict(zip(orphans.tolist(), keys, strict=True))
        younger = {row: there.younger[key] for row, key in by_row.items() if key in there.younger}
        objects, verdicts = _written_again(judge, objects, verdicts, younger)
        gone = orphans[[key not in there.same and key not in there.younger for key in keys]]
        self.gone += len(gone)
        rows = np.delete(np.arange(len(verdicts.codes)), gone)
        return objects.at(rows), verdicts.at(rows)

    def totals(self) -> list[Document]:
        """A row for each topic id and verdict, of what was read so far: orphans first, the most bytes first, then by
        name."""
        return self._totals.rows()

    def summary(self) -> Document:
        """Objects and bytes by status and storage class, orphans by cause, what of tieredctl's own was passed over, how
        much was gone by the time that it was judged, and whether all could be judged."""
        reserved = self.unreserved.summary() if self.unreserved else None
        return self._totals.summary(reserved, self.gone, is_whole=self.metadata_is_whole and not self.is_doubted)

    @property
    def _totals(self) -> ScanTotals:
        return ScanTotals(self.options.price, self.groups)

    @property
    def metadata_is_whole(self) -> bool:
        """Whether every event could be read."""
        return self.stream is None or Certainty.of(self.stream).is_whole

    def _judge(self, events: SegmentEvents, live: LiveTopics, stream: EventStream) -> Judge:
        states, options = segment_states(events), self.options
        demand_believable(options.topic_sources, live, states.topics_with_segments())
        times = self._original_times()
        return Judge(states, options.now_ms, options.min_age_ms, live, Certainty.of(stream), times, options.has_times)

    def _original_times(self) -> OriginalTimes:
        """The original times of what was put back, and may therefore look young."""
        if self.store is None:
            return NO_ORIGINAL_TIMES
        since_ms = self.options.now_ms - self.options.min_age_ms
        return read_original_times(self.store, self.options.key, TIMES_OF_RESTORED, since_ms)

    def selected(self, objects: ObjectColumns) -> Ints:
        """The rows that the selection means."""
        return selected_rows(objects, self.options.selection)

    def _count(self, objects: ObjectColumns, verdicts: Verdicts) -> None:
        rows = self.selected(objects)
        classes = objects.storage_classes.dictionary.to_pylist()
        class_of = numbers_in(objects.storage_classes.indices)[rows]
        owners = objects.said.stems[rows] * len(classes) + class_of
        kinds, kind_of = distinct_numbers(owners << 8 | verdicts.codes[rows])
        totals = _totals_of_each(len(kinds), kind_of, objects.sizes[rows], objects.last_modified_ms[rows])
        for kind, more in zip(kinds.tolist(), totals, strict=True):
            stem_number, class_number = divmod(kind >> 8, len(classes))
            stem = objects.said.explained[stem_number]
            topic, topic_id = (stem.topic, stem.topic_id) if stem else ("", "")
            group = Group(topic, topic_id, *verdict_of(kind & 0xFF), classes[class_number], reason_of(kind & 0xFF))
            self._totals.add(group, more)

    def _document(self, judge: Judge, objects: ObjectColumns, verdicts: Verdicts, row: int, code: int) -> Document:
        explained = objects.explained(row)
        status, cause = verdict_of(code)
        key = key_text(objects.keys[row].as_py())
        stored = StoredObject(key, int(objects.sizes[row]), int(objects.last_modified_ms[row]), "")
        return object_document(ListedObject(stored, explained)) | {
            "storageClass": objects.storage_classes[row].as_py() or None,
            "status": status.value,
            "cause": cause.value if cause else None,
            "topicLive": judge.live_topics.is_live(explained.topic_id) if explained else None,
            "evidence": self.evidence(judge, objects, verdicts, row),
        }

    def evidence(self, judge: Judge, objects: ObjectColumns, verdicts: Verdicts, row: int) -> Document | None:
        """The last event of an object's segment, or up to where (exclusive) there is none; why the object is unknown,
        where it may be the only copy of its records, or that it is too young; and of what was put back, how old it was
        counted."""
        events = self._events_of(judge, int(verdicts.segments[row]), objects.explained(row))
        if reason := reason_of(int(verdicts.codes[row])):
            events = {**(events or {}), "reason": reason.value}
        modified_ms = int(verdicts.modified_ms[row])
        if modified_ms == objects.last_modified_ms[row]:
            return events
        return {**(events or {}), "originalTime": iso_8601(modified_ms)}

    def _events_of(self, judge: Judge, segment: int, explained: ExplainedKey | None) -> Document | None:
        if explained is None or self.stream is None:
            return None
        if segment == NO_SEGMENT:
            return _absence(self.stream, explained.topic_id_partition)
        segments = judge.segments
        state = int(segments.states[segment])
        return {
            "state": None if state == NO_STATE else RemoteLogSegmentState(state).name,
            "metadataPartition": int(segments.metadata_partitions[segment]),
            "metadataOffset": int(segments.metadata_offsets[segment]),
        }


def _written_again(
    judge: Judge, objects: ObjectColumns, verdicts: Verdicts, younger: Mapping[int, int]
) -> tuple[ObjectColumns, Verdicts]:
    """Objects and verdicts where some rows have other times than they were listed with."""
    rows, times = list(younger), list(younger.values())
    codes, listed_ms, modified_ms = verdicts.codes.copy(), objects.last_modified_ms.copy(), verdicts.modified_ms.copy()
    codes[rows] = [judge.code_of_younger(moment) for moment in times]
    listed_ms[rows] = modified_ms[rows] = times
    return replace(objects, last_modified_ms=listed_ms), replace(verdicts, codes=codes, modified_ms=modified_ms)


def _absence(stream: EventStream, partition: TopicIdPartition) -> Document:
    numbers = stream.source.metadata_partitions()
    number = metadata_partition(partition.topic_id, partition.partition, len(numbers))
    return {"metadataPartition": number, "noEventBefore": stream.end_offset(number)}


def _totals_of_each(kinds: int, kind_of: Ints, sizes: Ints, times: Ints) -> Iterator[GroupTotals]:
    """The totals of each kind; every kind has objects."""
    sums = np.zeros(kinds, np.int64)
    oldest, newest = np.full(kinds, np.iinfo(np.int64).max), np.full(kinds, np.iinfo(np.int64).min)
    np.add.at(sums, kind_of, sizes)
    np.minimum.at(oldest, kind_of, times)
    np.maximum.at(newest, kind_of, times)
    counts = np.bincount(kind_of, minlength=kinds)
    return map(GroupTotals, counts.tolist(), sums.tolist(), oldest.tolist(), newest.tolist())


_GO_ON = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)


@dataclass(slots=True)
class MovedSegments:
    """Asks metadata that is read a second time, after the first, when it is needed first."""

    read_metadata: Callable[[], EventStream]
    first: EventStream
    """The first reading."""
    lost: list[Finding] = field(default_factory=list)
    """What the second reading lacks: then only what it has in a later state is known to have moved."""
    _now: SegmentStates | None = None

    def have_moved(self, then: SegmentStates, rows: Ints) -> Flags:
        """Whether the segments of rows of `then` are in another state by now. Raises TieredctlError as reading the
        metadata does."""
        may_go_on = np.isin(then.states[rows], _GO_ON)
        moved = np.zeros(len(rows), np.bool_)
        if not may_go_on.any():
            return moved
        now, rows = self._read(), rows[may_go_on]
        rows_now = now.rows.rows_of(then.segment_ids.at(rows))
        is_known = rows_now != NOT_FOUND
        if self.lost:
            states_now = now.states[rows_now[is_known]]
            went_on = np.zeros(len(rows), np.bool_)
            went_on[is_known] = (states_now > then.states[rows[is_known]]) & (states_now != NO_STATE)
            moved[may_go_on] = went_on
            return moved
        same = np.zeros(len(rows), np.bool_)
        same[is_known] = now.states[rows_now[is_known]] == then.states[rows[is_known]]
        moved[may_go_on] = ~same
        return moved

    def _read(self) -> SegmentStates:
        if self._now is None:
            events = SegmentEvents()
            stream = self.read_metadata()
            read_events(stream, events)
            self.lost = lost_between(self.first, stream)
            self._now = segment_states(events)
        return self._now

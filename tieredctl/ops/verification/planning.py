"""What a listing tells of a cluster, and what is left to be read: findings, counts, and tasks.

Columns tell which segments have all their objects, with the right sizes, and which partitions' segments make a log.
Only of the others objects are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import ObjectSubject, SegmentSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_text
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.remote.listing import stored_object
from tieredctl.ops.verification.gone_topics import GoneTopics
from tieredctl.ops.verification.judged_partitions import NO_PART, Elsewhere, JudgedPartitions, KeyPlaces
from tieredctl.ops.verification.listed_objects import NAMED, ListedObjects, Overlap
from tieredctl.ops.verification.object_check import AskedSegments, FinishedSegment, JudgedBy
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.other_forms import OtherForms
from tieredctl.ops.verification.partition_check import check_segments, lineage_findings
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.suspects import Suspects, explainable
from tieredctl.ops.verification.tasks import TaskColumns, task_batches
from tieredctl.ports.object_store import StoredObject
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


@dataclass
class VerificationPlan:
    """Holds a listing against metadata; until it is closed, it gives the tasks."""

    metadata: ReplayedMetadata
    stream: EventStream
    by: JudgedBy
    options: VerifyOptions
    _asked: list[FinishedSegment] = field(default_factory=list)
    _absent: list[RemoteLogSegmentMetadata] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.result = Verification(self.options.level)
        """What planning found and counted, to which reading adds."""
        self._stack = ExitStack()
        self._selected = self._rows_selected()

    def __enter__(self) -> VerificationPlan:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def make(self) -> None:
        """Lists the store, and looks at what is amiss. Raises TieredctlError `no-overlap`, and what listing raises."""
        metadata, selection = self.metadata, self.options.selection
        elsewhere = Elsewhere(metadata, self.stream.coverage)
        judged = self._judged_partitions(elsewhere)
        overlap = Overlap(self.by.store, self.by.layout)
        topic_ids = {partition.topic_id for partition in self.stream.partitions}
        self._listed = ListedObjects(metadata, judged, overlap, self._selected)
        places = KeyPlaces(judged, replace(selection, segment_ids=()), elsewhere, topic_ids)
        self._stack.enter_context(self._listed.read(places))
        self.result.findings += self._listed.findings
        self._suspects = Suspects(metadata, self._listed, self.by.clock, self.by.transaction_indexes)
        self._objects = self._objects_of_suspects()
        unlisted = [number for number in judged.numbers.values() if number not in self._listed.partitions]
        for number in self._listed.partitions:
            self._check(number)
        overlap.demand(_promised(metadata, self.by.gone), topic_ids, selection, self.by.removed)
        for number in unlisted:
            self._check(number)
        self._count_sound()
        self.result.findings += OtherForms(self.by.store, self.by.layout).judge(self._absent)
        self.result.findings = self._without_referenced(self.result.findings)
        self.result.findings += [*elsewhere.findings(), *self.by.gone.findings(), *self.by.removed.findings()]

    def tasks(self) -> Iterator[pa.RecordBatch]:
        """The segments to be read, in batches by TASK_SCHEMA; `result.segments` in all."""
        level, interval = self.options.level, self.options.index_interval_bytes
        if level is Level.LISTING:
            return
        yield from TaskColumns(self.metadata, self._listed, level, interval).batches(self._sound)
        yield from task_batches(_task(one, level, interval) for one in self._asked)

    def _judged_partitions(self, elsewhere: Elsewhere) -> JudgedPartitions:
        # A partition that a broker has but the metadata does not may have lost all of its events.
        local = (one for one in self.options.local_logs if self.options.selection.has(one))
        judged = dict.fromkeys([*(one for one in local if not elsewhere.may_have(one)), *self.metadata.caches])
        with_events = self.metadata.events.partitions
        partitions = [*self.metadata.partitions, *(one for one in judged if one not in with_events)]
        are_gone = np.array([one in judged and self.by.gone.has(one) for one in partitions], np.bool_)
        return JudgedPartitions(self.by.layout, partitions, list(judged), are_gone)

    def _rows_selected(self) -> Flags:
        selected = np.ones(len(self.metadata.rows), np.bool_)
        if self.options.selection.segment_ids:
            selected[:] = False
            selected[self.metadata.named(self.options.selection.segment_ids)] = True
        return selected

    def _check(self, number: int) -> None:
        """Judges a partition by its listing."""
        partition = self._listed.judged.partitions[number]
        rows = self.metadata.rows_of(partition)
        if self._listed.judged.are_gone[number]:
            self._note_gone(number, partition, int(self._selected[rows].sum()))
            return
        finished = self.metadata.rows.states[rows] == _FINISHED
        self.result.skipped += int((~finished).sum())
        report = self._looked_at(rows[self._suspects.rows[rows]])
        self.result.findings += report.findings
        self._take(report)
        finished_rows = rows[finished]
        if report.removed:
            removed = self.metadata.named(report.removed)
            finished_rows = finished_rows[~np.isin(finished_rows, removed)]
            self.result.skipped += len(report.removed)
        local = self.options.local_logs.get(partition)
        self.result.findings += lineage_findings(partition, self.metadata, finished_rows, self.by, local)

    def _note_gone(self, number: int, partition: TopicIdPartition, segments: int) -> None:
        objects, size = int(self._listed.counted_objects[number]), int(self._listed.counted_bytes[number])
        self.by.gone.add(partition, segments, objects, size)
        self.result.skipped += segments

    def _looked_at(self, rows: Ints) -> AskedSegments:
        report = AskedSegments()
        segments = [one for _, one in self.metadata.known(rows)]
        by_id = dict(zip((one.metadata.segment_id for one in segments), rows.tolist(), strict=True))
        unlisted = {segment_id for segment_id, row in by_id.items() if not self._listed.flags[row] & NAMED}
        listed = {segment_id: self._objects.get(row, {}) for segment_id, row in by_id.items()}
        check_segments(sorted(segments, key=_start), listed, unlisted, self.by, report)
        return report

    def _take(self, report: AskedSegments) -> None:
        """What was seen of segments that are meant."""
        selection, subset = self.options.selection, self.options.subset
        if self.options.level is not Level.FULL:
            self.result.transaction_indexes_unknown += report.transaction_indexes_unknown
        self._absent += (one for one in report.absent if selection.names_segment(one.segment_id))
        for one in report.finished:
            segment_id = one.metadata.segment_id
            if not selection.names_segment(segment_id):
                continue
            if not subset.has(segment_id):
                self.result.outside_subset += 1
                continue
            if segment_id in report.not_looked_at:
                self.result.not_looked_at += 1
                self.result.silent = self.by.silence.why
                continue
            self.result.segments += 1
            self.result.objects += len(one.present)
            if self.options.level is not Level.LISTING:
                self._asked.append(one)

    def _count_sound(self) -> None:
        if self.options.level is not Level.FULL:
            self.result.transaction_indexes_unknown += self._suspects.transaction_indexes_unknown
        self._sound = self._suspects.sound & self._selected
        if not self.options.subset.is_all:
            rows = np.flatnonzero(self._sound)
            self._sound[rows] = self.options.subset.has_each(self.metadata.rows.segment_ids.at(rows))
            self.result.outside_subset += len(rows) - int(self._sound[rows].sum())
        self.result.segments += int(self._sound.sum())
        self.result.objects += int(np.bitwise_count(self._suspects.parts[self._sound]).sum())

    def _objects_of_suspects(self) -> dict[int, dict[str, StoredObject]]:
        """The listed objects of the segments that are looked at, by row, then key."""
        by_row: dict[int, dict[str, StoredObject]] = {}
        suspects = self._suspects.rows
        if not suspects.any():
            return by_row
        moved: dict[str, list[int]] = {}
        for row, keys in self._suspects.moved.items():
            for key in keys:
                moved.setdefault(key, []).append(row)
        for batch in self._listed.batches():
            rows, parts = numbers_in(batch.column("row")), numbers_in(batch.column("part"))
            own = (rows >= 0) & (parts != NO_PART)
            own[own] = suspects[rows[own]]
            for place in np.flatnonzero(own).tolist():
                stored = stored_object(batch, place)
                by_row.setdefault(int(rows[place]), {})[stored.key] = stored
            if moved:
                self._add_moved(batch, moved, by_row)
        return by_row

    def _add_moved(
        self, batch: pa.RecordBatch, moved: Mapping[str, list[int]], by_row: dict[int, dict[str, StoredObject]]
    ) -> None:
        """Objects under keys that only a segment's custom metadata names, in its own partition."""
        partitions = numbers_in(batch.column("partition")).tolist()
        for place, (data, partition) in enumerate(zip(batch.column("key").to_pylist(), partitions, strict=True)):
            for row in moved.get(key_text(data), ()):
                if self.metadata.rows.partitions[row] == partition:
                    stored = stored_object(batch, place)
                    by_row.setdefault(row, {})[stored.key] = stored

    def _without_referenced(self, findings: list[Finding]) -> list[Finding]:
        """Without the objects that a segment's custom metadata explains although their key does not."""
        unexplained = {key for one in findings if (key := _unreferenced_key(one)) is not None}
        if not unexplained:
            return findings
        layout, metadata = self.by.layout, self.metadata
        may_explain = metadata.have_custom_metadata(np.arange(len(metadata.rows)))
        strange = np.array([not explainable(layout, one) for one in metadata.partitions], np.bool_)
        rows = np.flatnonzero(may_explain | strange[metadata.rows.partitions])
        for segment in self._suspects.identified(rows):
            unexplained -= set(layout.promised_objects(segment).values())
        return [one for one in findings if (key := _unreferenced_key(one)) is None or key in unexplained]


def _unreferenced_key(finding: Finding) -> str | None:
    if finding.code is FindingCode.OBJECT_UNREFERENCED and isinstance(finding.about, ObjectSubject | SegmentSubject):
        return finding.about.key
    return None


def _promised(metadata: ReplayedMetadata, gone: GoneTopics) -> Iterator[RemoteLogSegmentMetadata]:
    """The segments whose objects must be in the store."""
    for partition, segment in metadata.known(metadata.in_states([_FINISHED])):
        if not gone.has(partition):
            yield segment.metadata


def _task(one: FinishedSegment, level: Level, index_interval_bytes: int) -> SegmentTask:
    keys = {part: stored.key for part, stored in one.present.items()}
    return SegmentTask(one.metadata, keys, level, index_interval_bytes, one.present)


def _start(segment: KnownSegment) -> tuple[int, str]:
    return segment.metadata.start_offset, segment.metadata.segment_id

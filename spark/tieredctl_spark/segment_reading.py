"""What a Spark task does: it reads its segments, several at once, as the local engine does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.report import SegmentFindings, SegmentReport, SegmentTask
from tieredctl.ops.verification.tasks import tasks_in
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl_spark.read_rate import RateLimited, ReadRate
from tieredctl_spark.readings import Answered
from tieredctl_spark.segment_rows import REPORT_SCHEMA, Result, report_row, result_of

_KEPT_COLUMNS = pa.schema(
    {
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "startOffset": pa.int64(),
        "endOffset": pa.int64(),
        "segmentSizeInBytes": pa.int32(),
        "level": pa.string(),
        "fingerprint": pa.string(),
    }
)
READING_SCHEMA = pa.schema([*_KEPT_COLUMNS, *REPORT_SCHEMA, ("result", pa.string()), ("store", pa.string())])
"""A row for each segment that was read, in the store of that URL; null where it is not known. `fingerprint` covers all
that determined the check."""
_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class SegmentReading:
    """How to read segments. It travels to executors."""

    store: ObjectStore
    layout: Layout
    seconds: float = float("inf")
    """No segment is begun later than this; at least one is read."""
    rate: ReadRate | None = None

    def results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row of READING_SCHEMA for each segment that was read in time, of rows that have TASK_SCHEMA's columns and a
        fingerprint."""
        rows = self._results(batches)
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            yield pa.RecordBatch.from_pylist(some, READING_SCHEMA)

    def reports(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SegmentReport]:
        """A report of each segment about which there is something to say, and one of all others."""
        sound = SegmentReport("", segments=0)
        for _, report in self._reports(batches):
            if result_of(report) is Result.SOUND:
                sound = _sum(sound, report)
            else:
                yield report
        if sound.segments:
            yield sound

    def answered(self, report: SegmentReport) -> Answered:
        """Whether the store answered for the segments of a report."""
        errors = [one for one in report.unread if one.code in CONCERN_EVERY_OBJECT]
        if report.not_looked_at is None and not errors:
            return Answered(report.segments, 0)
        why = errors[0].message if errors else report.not_looked_at
        refusal = next((one.message for one in errors if one.code is ErrorCode.NO_CREDENTIALS), None)
        return Answered(0, report.segments, why, refusal)

    def passed_over(self, unit: pa.Table, why: str) -> SegmentReport:
        """The report of segments that were not asked for."""
        objects = sum(map(len, unit.column("objects").to_pylist()))
        return SegmentReport("", not_looked_at=why, segments=len(unit), objects=objects)

    def _results(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        return (result_row(*one, self.store.url) for one in self._reports(batches))

    def _reports(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Mapping[str, Any], SegmentReport]]:
        store = RateLimited(self.store, self.rate) if self.rate else self.store
        ends, refused = time.monotonic() + self.seconds, None
        for batch in batches:
            kept = batch.select([name for name in _KEPT_COLUMNS.names if name in batch.schema.names]).to_pylist()
            tasks, done = list(tasks_in(batch)), 0
            for report in self._each(tasks, store, ends):
                # Without credentials the first segment's answer is every segment's.
                refused = refused or next((one for one in report.unread if one.code is ErrorCode.NO_CREDENTIALS), None)
                yield kept[done], report
                done += 1
                if refused:
                    break
            if refused:
                for row, task in zip(kept[done:], tasks[done:], strict=True):
                    segment_id, objects = task.metadata.segment_id, len(task.keys)
                    yield row, SegmentReport(segment_id, not_looked_at=refused.message, objects=objects)

    def _each(self, tasks: Sequence[SegmentTask], store: ObjectStore, ends: float) -> Iterator[SegmentReport]:
        """A report for each task that was begun in time. What nobody foresaw is said of the segment where it came up;
        the others are read all the same."""

        def in_time(some: Sequence[SegmentTask]) -> Iterator[SegmentTask]:
            for task in some:
                if time.monotonic() > ends:
                    return
                yield task

        # The first alone, whatever the time: it shows whether the store answers at all.
        engine, done, some = LocalEngine(), 0, iter(tasks[:1])
        while done < len(tasks):
            before = done
            try:
                for report in engine.check_segments(some, store, self.layout):
                    yield report
                    done += 1
            except Exception as error:  # noqa: BLE001 - one segment must not fail the job
                yield failed_report(tasks[done], self.layout, failure_in_a_line(error))
                done += 1
            if done == before:
                return
            some = in_time(tasks[done:])


def result_row(task: Mapping[str, Any], report: SegmentReport, store_url: str) -> dict[str, Any]:
    """As READING_SCHEMA; `task` has at least the columns that are kept of it."""
    kept = {name: task[name] for name in _KEPT_COLUMNS.names}
    return {**kept, **report_row(report), "result": result_of(report).value, "store": store_url}


def failure_in_a_line(error: Exception) -> str:
    """What nobody foresaw, as a finding says it."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def failed_report(task: SegmentTask, layout: Layout, why: str) -> SegmentReport:
    """The report of a segment of which nothing is known, since the program failed on it."""
    keys = possible_objects(layout, task.metadata)
    findings = SegmentFindings(task.metadata, keys)
    findings.add(FindingCode.UNREADABLE, Part.LOG, f"tieredctl failed on it: {why}", error=ErrorCode.FAULT.value)
    return SegmentReport(task.metadata.segment_id, findings=tuple(findings.found))


def _sum(one: SegmentReport, other: SegmentReport) -> SegmentReport:
    return SegmentReport(
        "",
        one.bytes_read + other.bytes_read,
        one.batches + other.batches,
        one.records + other.records,
        segments=one.segments + other.segments,
    )

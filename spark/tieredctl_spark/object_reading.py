"""What a Spark task does with objects of diskless topics: it reads them, several at once, as the local engine does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from tieredctl_inkless.ops.diskless.finding_places import object_finding
from tieredctl_inkless.ops.diskless.object_reading import ObjectReport, ObjectTask, read_object, read_objects
from tieredctl_inkless.ops.diskless.object_tasks import tasks_in

from tieredctl.errors import ErrorCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.verification.report import Level
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.readings import Answered
from tieredctl_spark.segment_reading import failure_in_a_line


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """How to read objects. It travels to executors."""

    store: ObjectStore
    level: Level

    def reports(self, batches: Iterable[pa.RecordBatch]) -> Iterator[ObjectReport]:
        """A report of each object about which there is something to say, and one of all others, of rows that have
        OBJECT_TASK_SCHEMA's columns."""
        sound = ObjectReport(objects=0)
        tasks = chain.from_iterable(map(tasks_in, batches))
        for report in read_objects(self.store, tasks, self.level, _read_or_say_why):
            if report.is_sound:
                sound = sound.and_sound(report)
            else:
                yield report
        if sound.objects:
            yield sound

    def answered(self, report: ObjectReport) -> Answered:
        """Whether the store answered for the objects of a report."""
        if report.is_passed_over:
            return Answered(0, report.objects)
        if report.silent is None:
            return Answered(report.objects, 0)
        why, is_refusal = report.silent.message, report.silent.code is ErrorCode.NO_CREDENTIALS
        return Answered(0, report.objects, why, why if is_refusal else None)

    def passed_over(self, unit: pa.Table, why: str) -> ObjectReport:  # noqa: ARG002 - as of segments
        """The report of objects that were not asked for."""
        return ObjectReport(objects=len(unit), is_passed_over=True)


def _read_or_say_why(store: ObjectStore, task: ObjectTask, level: Level) -> ObjectReport:
    """What nobody foresaw is said of the object where it came up; the others are read all the same."""
    try:
        return read_object(store, task, level)
    except Exception as error:  # noqa: BLE001 - one object must not fail the job
        message = f"tieredctl failed on it: {failure_in_a_line(error)}"
        found = object_finding(FindingCode.UNREADABLE, task.key, message, error=ErrorCode.FAULT.value)
        return ObjectReport(task.file, findings=(found,))

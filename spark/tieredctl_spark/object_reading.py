"""What a Spark task does with objects of diskless topics: it reads them, several at once, as the local engine does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from tieredctl_inkless.model.diskless_subjects import read_diskless_subject
from tieredctl_inkless.ops.diskless.finding_places import object_finding
from tieredctl_inkless.ops.diskless.object_reading import ObjectReport, ObjectTask, read_object, read_objects
from tieredctl_inkless.ops.diskless.object_tasks import tasks_in

from tieredctl.errors import ErrorCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.verification.report import Level
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row, read_finding
from tieredctl_spark.segment_reading import failure_in_a_line
from tieredctl_spark.segment_rows import UNREAD_TYPE, read_unread, unread_row

OBJECT_REPORT_SCHEMA = pa.schema(
    {
        "file": pa.int64(),
        "bytesRead": pa.int64(),
        "batches": pa.int64(),
        "records": pa.int64(),
        "findings": pa.list_(FINDING_TYPE),
        "doubted": pa.list_(pa.int64()),
        "isMissing": pa.bool_(),
        "silent": UNREAD_TYPE,
        "objects": pa.int64(),
        "isPassedOver": pa.bool_(),
    }
)
"""An `ObjectReport`; `silent` is null where the store answered."""


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """How to read objects. It travels to executors."""

    store: ObjectStore
    level: Level

    def reports(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row of OBJECT_REPORT_SCHEMA for each object about which there is something to say, and one for all others,
        of rows that have OBJECT_TASK_SCHEMA's columns."""
        sound = ObjectReport(objects=0)
        tasks = chain.from_iterable(map(tasks_in, batches))
        for report in read_objects(self.store, tasks, self.level, _read_or_say_why):
            if report.is_sound:
                sound = sound.and_sound(report)
            else:
                yield _row(report)
        if sound.objects:
            yield _row(sound)


def read_object_report(row: Mapping[str, Any]) -> ObjectReport:
    """The report of a row by OBJECT_REPORT_SCHEMA."""
    return ObjectReport(
        row["file"],
        row["bytesRead"],
        row["batches"],
        row["records"],
        tuple(read_finding(finding, read_diskless_subject) for finding in row["findings"]),
        np.array(row["doubted"], np.int64),
        row["isMissing"],
        None if row["silent"] is None else read_unread(row["silent"]),
        row["objects"],
        row["isPassedOver"],
    )


def _row(report: ObjectReport) -> pa.RecordBatch:
    row = {
        "file": report.file,
        "bytesRead": report.bytes_read,
        "batches": report.batches,
        "records": report.records,
        "findings": [finding_row(finding) for finding in report.findings],
        "doubted": report.doubted.tolist(),
        "isMissing": report.is_missing,
        "silent": None if report.silent is None else unread_row(report.silent),
        "objects": report.objects,
        "isPassedOver": report.is_passed_over,
    }
    return pa.RecordBatch.from_pylist([row], OBJECT_REPORT_SCHEMA)


def _read_or_say_why(store: ObjectStore, task: ObjectTask, level: Level) -> ObjectReport:
    """What nobody foresaw is said of the object where it came up; the others are read all the same."""
    try:
        return read_object(store, task, level)
    except Exception as error:  # noqa: BLE001 - one object must not fail the job
        message = f"tieredctl failed on it: {failure_in_a_line(error)}"
        found = object_finding(FindingCode.UNREADABLE, task.key, message, error=ErrorCode.FAULT.value)
        return ObjectReport(task.file, findings=(found,))

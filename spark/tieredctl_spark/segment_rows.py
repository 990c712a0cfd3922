"""What is sent to executors and back: segments to be read, and reports of them, as rows of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.layouts.protocol import Layout, Part
from tieredctl.model.events import RecordForm, RemoteLogSegmentMetadata
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask, Unread
from tieredctl.ops.verification.silence import Silence
from tieredctl.storage.protocol import ObjectStore
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row, read_finding

TASK_SCHEMA = pa.schema(
    {
        "segmentMetadata": pa.binary(),
        "recordForm": pa.string(),
        "keys": pa.map_(pa.string(), pa.string()),
        "level": pa.string(),
        "indexIntervalBytes": pa.int32(),
    }
)
"""A `SegmentTask`. Metadata is a record's value in Kafka's form, which can hold any other form's content; `recordForm`
is its original form."""

REPORT_SCHEMA = pa.schema(
    {
        "segmentId": pa.string(),
        "bytesRead": pa.int64(),
        "batches": pa.int64(),
        "records": pa.int64(),
        "findings": pa.list_(FINDING_TYPE),
        "unread": pa.list_(pa.struct({"code": pa.string(), "message": pa.string(), "hint": pa.string()})),
        "notLookedAt": pa.string(),
    }
)
"""A `SegmentReport`."""


def task_row(task: SegmentTask) -> dict[str, Any]:
    """A task as TASK_SCHEMA."""
    metadata = task.metadata
    return {
        "segmentMetadata": encode_event(replace(metadata, form=RecordForm.KAFKA)),
        "recordForm": metadata.form.value,
        "keys": [(part.value, key) for part, key in task.keys.items()],
        "level": task.level.value,
        "indexIntervalBytes": task.index_interval_bytes,
    }


def read_task(row: Mapping[str, Any]) -> SegmentTask:
    """The task of a row that `task_row` made."""
    metadata = decode_event(row["segmentMetadata"])
    assert isinstance(metadata, RemoteLogSegmentMetadata)
    return SegmentTask(
        replace(metadata, form=RecordForm(row["recordForm"])),
        {Part(part): key for part, key in row["keys"]},
        Level(row["level"]),
        row["indexIntervalBytes"],
    )


def report_row(report: SegmentReport) -> dict[str, Any]:
    """A report as REPORT_SCHEMA."""
    return {
        "segmentId": report.segment_id,
        "bytesRead": report.bytes_read,
        "batches": report.batches,
        "records": report.records,
        "findings": [finding_row(finding) for finding in report.findings],
        "unread": [{"code": one.code.value, "message": one.message, "hint": one.hint} for one in report.unread],
        "notLookedAt": report.not_looked_at,
    }


def read_report(row: Mapping[str, Any]) -> SegmentReport:
    """The report of a row that has, among others, the columns that `report_row` made."""
    return SegmentReport(
        row["segmentId"],
        row["bytesRead"],
        row["batches"],
        row["records"],
        tuple(read_finding(finding) for finding in row["findings"]),
        tuple(Unread(ErrorCode(one["code"]), one["message"], one["hint"]) for one in row["unread"] or ()),
        row["notLookedAt"],
    )


def check_rows(batches: Iterable[pa.RecordBatch], store: ObjectStore, layout: Layout) -> Iterator[pa.RecordBatch]:
    """Reads the segments that rows of TASK_SCHEMA name, on an executor. A report for each, in their order; once the
    store is silent the reports say so, and no further object is requested."""
    silence = Silence()

    def check(row: Mapping[str, Any]) -> SegmentReport:
        report = silence.check(read_task(row), store, layout)
        silence.note_report(report)
        return report

    for batch in batches:
        reports = [check(row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist([report_row(report) for report in reports], REPORT_SCHEMA)

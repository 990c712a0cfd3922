"""Reports of segments as rows of Arrow, and back."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode
from tieredctl.ops.verification.report import SegmentReport, Unread
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row, read_finding

UNREAD_TYPE = pa.struct({"code": pa.string(), "message": pa.string(), "hint": pa.string()})
"""An `Unread`."""
REPORT_SCHEMA = pa.schema(
    {
        "segmentId": pa.string(),
        "bytesRead": pa.int64(),
        "batches": pa.int64(),
        "records": pa.int64(),
        "findings": pa.list_(FINDING_TYPE),
        "unread": pa.list_(UNREAD_TYPE),
        "notLookedAt": pa.string(),
        "segments": pa.int64(),
        "objects": pa.int64(),
    }
)
"""A `SegmentReport`."""


class Result(StrEnum):
    """What reading a segment showed, in a word."""

    SOUND = "sound"
    FOUND = "found"
    """Something was found, if only a remark."""
    UNKNOWN = "unknown"
    """It could not all be read."""
    NOT_LOOKED_AT = "not-looked-at"


def result_of(report: SegmentReport) -> Result:
    """The word for a report."""
    if report.not_looked_at is not None:
        return Result.NOT_LOOKED_AT
    if report.unread or any(finding.kind.incomplete for finding in report.findings):
        return Result.UNKNOWN
    return Result.FOUND if report.findings else Result.SOUND


def report_row(report: SegmentReport) -> dict[str, Any]:
    """A report as REPORT_SCHEMA."""
    return {
        "segmentId": report.segment_id,
        "bytesRead": report.bytes_read,
        "batches": report.batches,
        "records": report.records,
        "findings": [finding_row(finding) for finding in report.findings],
        "unread": [unread_row(one) for one in report.unread],
        "notLookedAt": report.not_looked_at,
        "segments": report.segments,
        "objects": report.objects,
    }


def read_report(row: Mapping[str, Any]) -> SegmentReport:
    """The report of a row that has, among others, the columns that `report_row` made."""
    return SegmentReport(
        row["segmentId"],
        row["bytesRead"],
        row["batches"],
        row["records"],
        tuple(read_finding(finding) for finding in row["findings"]),
        tuple(map(read_unread, row["unread"] or ())),
        row["notLookedAt"],
        row["segments"],
        row["objects"],
    )


def unread_row(unread: Unread) -> dict[str, Any]:
    """As UNREAD_TYPE."""
    return {"code": unread.code.value, "message": unread.message, "hint": unread.hint}


def read_unread(row: Mapping[str, Any]) -> Unread:
    """The value of a row that `unread_row` made."""
    return Unread(ErrorCode(row["code"]), row["message"], row["hint"])

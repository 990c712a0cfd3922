"""What travels back from executors arrives as it was."""

from __future__ import annotations

import pyarrow as pa
from tieredctl_spark.segment_rows import REPORT_SCHEMA, read_report, report_row

from tests.metadata_logs import started
from tieredctl.errors import ErrorCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.ops.verification.report import SegmentFindings, SegmentReport, Unread
from tieredctl.ports.layout import Part


def test_a_report_arrives_with_all_that_its_findings_say() -> None:
    metadata = started(-5 % 2**128, 0, 9)
    findings = SegmentFindings(metadata, {Part.LOG: "ä.log"})
    findings.add(FindingCode.BATCH_CORRUPT, Part.LOG, "ä is wrong", position=2**62, offsets=(0, -1), why='ä"\n')
    findings.add(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, "m", severity=Severity.WARNING)
    unread = Unread(ErrorCode.PRIVATE_KEY, "It cannot be decrypted.", "Give the key.")
    report = SegmentReport(metadata.segment_id, 2**40, 3, 4, tuple(findings.found), (unread,))
    others = [SegmentReport("x"), SegmentReport("y", not_looked_at="gone", segments=3, objects=15)]

    batch = pa.RecordBatch.from_pylist([report_row(one) for one in (report, *others)], REPORT_SCHEMA)

    arrived = [read_report(row) for row in batch.to_pylist()]
    assert arrived == [report, *others]
    assert [one.about for one in arrived[0].findings] == [one.about for one in report.findings]

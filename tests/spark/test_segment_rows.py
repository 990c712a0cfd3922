"""What travels to executors and back arrives as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tieredctl_spark.segment_rows import (
    REPORT_SCHEMA,
    TASK_SCHEMA,
    read_report,
    read_task,
    report_row,
    task_row,
)

from tests.metadata_logs import started
from tieredctl.errors import ErrorCode
from tieredctl.layouts.protocol import Part
from tieredctl.model.events import RecordForm, RemoteLogSegmentState, TaggedField
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask, Unread

KEYS = {Part.LOG: "t-0-x/ä/0.log", Part.OFFSET_INDEX: "t-0-x/0.index"}


@pytest.mark.parametrize("form", RecordForm)
@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("custom_metadata", [None, b"", b"\0\xff" * 9])
def test_a_task_arrives_whatever_form_its_metadata_had(
    form: RecordForm, level: Level, custom_metadata: bytes | None
) -> None:
    metadata = started(
        -5 % 2**128,  # an id with dashes and underscores
        3,
        900,
        {0: 3, 7: 500},
        custom_metadata=custom_metadata,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        txn_idx_empty=True,
        form=form,
        tagged_fields=(TaggedField("", 9, b"later"), TaggedField("SegmentLeaderEpochs[1]", 4, b"")),
    )
    task = SegmentTask(metadata, KEYS, level, 4_097)

    batch = pa.RecordBatch.from_pylist([task_row(task)], TASK_SCHEMA)

    assert [read_task(row) for row in batch.to_pylist()] == [task]


def test_a_report_arrives_with_all_that_its_findings_say() -> None:
    metadata = started(-5 % 2**128, 0, 9)
    findings = SegmentFindings(metadata, {Part.LOG: "ä.log"})
    findings.add(FindingCode.BATCH_CORRUPT, Part.LOG, "ä is wrong", position=2**62, offsets=(0, -1), why='ä"\n')
    findings.add(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, "m", severity=Severity.WARNING)
    unread = Unread(ErrorCode.PRIVATE_KEY, "It cannot be decrypted.", "Give the key.")
    report = SegmentReport(metadata.segment_id, 2**40, 3, 4, tuple(findings.found), (unread,))
    others = [SegmentReport("x"), SegmentReport("y", not_looked_at="the store went away")]

    batch = pa.RecordBatch.from_pylist([report_row(one) for one in (report, *others)], REPORT_SCHEMA)

    arrived = [read_report(row) for row in batch.to_pylist()]
    assert arrived == [report, *others]
    assert [one.about for one in arrived[0].findings] == [one.about for one in report.findings]

"""Gaps between segments, beside where a restored log begins."""

from __future__ import annotations

import pytest

from tests.metadata_logs import PARTITION
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.restore.restored_logs import Origin, RestoredLog, not_below_logs


@pytest.mark.parametrize(
    ("log_start_offset", "origin", "is_a_loss"),
    [(20, Origin.SEGMENTS, False), (19, Origin.SEGMENTS, True), (20, Origin.UNKNOWN, True), (20, Origin.GIVEN, True)],
)
def test_only_a_gap_that_ends_below_the_start_of_a_known_log_is_no_loss(
    log_start_offset: int, origin: Origin, is_a_loss: bool
) -> None:
    gap = Finding(FindingCode.OFFSET_GAP, "t-0", "", about=PartitionSubject(PARTITION, (10, 19)))
    log = RestoredLog(PARTITION, origin, log_start_offset, 30)

    assert [*not_below_logs([gap], {PARTITION: log})] == [gap] * is_a_loss
    assert [*not_below_logs([gap], {})] == [gap]

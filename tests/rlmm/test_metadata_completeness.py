"""Whether metadata is whole, by what was found in it."""

from __future__ import annotations

import pytest

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import FINDING_KINDS, Finding, Severity
from tieredctl.ops.metadata.completeness import demand_whole, doubts, is_whole, is_whole_for_partitions_here

MISSING = FindingCode.METADATA_PARTITION_MISSING
EVERY = [Finding(code, "", "", {}, severity) for code in FINDING_KINDS for severity in Severity]
LEAVES_DOUBT = {
    (FindingCode.EVENT_UNDECODABLE, Severity.ERROR),
    (FindingCode.BATCH_CORRUPT, Severity.CRITICAL),
    (FindingCode.METADATA_CONFLICT, Severity.CRITICAL),
    (FindingCode.METADATA_TRUNCATED, Severity.ERROR),
    (FindingCode.METADATA_CUT_SHORT, Severity.ERROR),
    (FindingCode.METADATA_COMPACTED, Severity.ERROR),
    (FindingCode.METADATA_EVENTS_LOST, Severity.ERROR),
    (MISSING, Severity.ERROR),
    (FindingCode.CHECK_NOT_MADE, Severity.WARNING),
}


def test_metadata_of_which_some_is_missing_or_unreadable_is_not_whole() -> None:
    for code, severity in sorted(LEAVES_DOUBT):
        found = [Finding(FindingCode.EVENT_ILLEGAL, "", ""), Finding(code, "", "", {}, severity)]

        assert not is_whole(found), code
        with pytest.raises(TieredctlError) as refusal:
            demand_whole(found)
        assert (refusal.value.code, refusal.value.message[: len(code)]) == (ErrorCode.METADATA_INCOMPLETE, code)


def test_all_who_ask_get_one_answer() -> None:
    for finding in EVERY:
        is_doubtful = finding.severity >= Severity.ERROR or finding.makes_incomplete
        assert is_whole([finding]) is not is_doubtful
        assert [*doubts([finding])] == [finding] * is_doubtful
        assert is_whole_for_partitions_here([finding]) is (not is_doubtful or finding.code is MISSING)


def test_metadata_with_odd_events_that_were_read_is_whole() -> None:
    found = [Finding(FindingCode.EVENT_ILLEGAL, "", ""), Finding(FindingCode.FOLDER_PASSED_OVER, "", "")]

    demand_whole(found)

    assert is_whole(found)
    assert is_whole([])


def test_a_partition_that_is_here_lacks_nothing_that_lies_in_another() -> None:
    assert is_whole_for_partitions_here([Finding(MISSING, "", "")])

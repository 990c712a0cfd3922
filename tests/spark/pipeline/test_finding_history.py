"""Findings in tables are remembered: by what they are about, until a complete look does not find them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from tieredctl_spark.pipeline.finding_history import FindingsOfLook, LookKind, merged_findings
from tieredctl_spark.tables.kinds import FINDINGS

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.verification.report import Level

PARTITION = TopicIdPartition("AAAAAAAAAAAAAAAAAAAAAQ", "orders", 0)


def gap(first: int, message: str = "10 offsets are missing") -> Finding:
    about = PartitionSubject(PARTITION, (first, first + 9))
    return Finding(FindingCode.OFFSET_GAP, "orders-0", message, about=about)


def look(*findings: Finding, level: Level = Level.HEADERS, is_complete: bool = True) -> FindingsOfLook:
    return FindingsOfLook(LookKind.VERIFICATION, level, findings, is_complete)


def after(*looks: FindingsOfLook) -> list[dict[str, Any]]:
    """The table after looks at the seconds 1, 2, 3 …."""
    table = FINDINGS.columns.empty_table()
    for second, one in enumerate(looks, 1):
        table = merged_findings(table, [one], second * 1_000)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def test_a_finding_is_one_whatever_its_message_says() -> None:
    (row,) = after(look(gap(10)), look(gap(10, "10 offsets are gone")))

    assert (seconds(row["firstSeen"]), seconds(row["lastSeen"]), row["resolved"]) == (1, 2, None)
    assert row["message"] == "10 offsets are gone"


def test_findings_about_other_offsets_are_others() -> None:
    rows = after(look(gap(10), gap(30)))

    assert [(row["firstOffset"], row["lastOffset"]) for row in rows] == [(10, 19), (30, 39)]


@pytest.mark.parametrize(
    ("later", "resolved"),
    [
        (look(), 2),
        (look(level=Level.FULL), 2),
        (look(level=Level.LISTING), None),
        (look(is_complete=False), None),
        (FindingsOfLook(LookKind.SCAN, Level.FULL, (), is_complete=True), None),
    ],
    ids=["as deep", "deeper", "shallower", "incomplete", "another kind"],
)
def test_only_a_complete_look_as_deep_resolves_it(later: FindingsOfLook, resolved: int | None) -> None:
    (row,) = after(look(gap(10)), later)

    assert (seconds(row["lastSeen"]), seconds(row["resolved"])) == (1, resolved)


def test_a_finding_that_comes_back_is_open_again() -> None:
    (row,) = after(look(gap(10)), look(), look(gap(10)))

    assert (seconds(row["firstSeen"]), seconds(row["lastSeen"]), row["resolved"]) == (1, 3, None)


def test_the_same_of_both_looks_is_one_row() -> None:
    scan = FindingsOfLook(LookKind.SCAN, Level.LISTING, [gap(10)], is_complete=True)

    table = merged_findings(FINDINGS.columns.empty_table(), [look(gap(10)), scan], 1_000)

    assert isinstance(table, pa.Table)
    assert table.column("look").to_pylist() == ["verification"]

"""What only one of two looks finds was movement; what both find is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.command_line import REPOSITORY
from tests.faults.lost_metadata import LostMetadata, led
from tests.metadata_logs import COPIED, updated
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentsSubject
from tieredctl.model.findings import FINDING_KINDS, Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.second_look import are_in_doubt, confirmed, look_twice

PARTITION = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "orders", 0)
BELOW = FindingCode.SEGMENTS_BELOW_LOG_START
MOVING = sorted(code for code, kind in FINDING_KINDS.items() if kind.moving)


def gap(first: int, last: int, code: FindingCode = FindingCode.LOCAL_REMOTE_GAP, subject: str = "orders-0") -> Finding:
    message = f"offsets {first} to {last} are nowhere"
    return Finding(code, subject, message, {"offsets": [first, last]}, about=PartitionSubject(PARTITION, (first, last)))


def below(*segment_ids: str) -> Finding:
    return Finding(BELOW, "orders-0", "", about=SegmentsSubject(segment_ids))


def test_of_missing_offsets_those_are_said_that_both_looks_missed() -> None:
    cases = {
        "the leader went on": ((gap(100, 120),), (gap(200, 220),), []),
        "nothing changed": ((gap(50, 60),), (gap(50, 60),), [(50, 60)]),
        "more was trimmed": ((gap(50, 120),), (gap(50, 220),), [(50, 120)]),
        "some expired": ((gap(50, 120),), (gap(80, 200),), [(80, 120)]),
        "what follows was copied": ((gap(50, 120),), (gap(50, 60, FindingCode.OFFSET_GAP), gap(200, 220)), [(50, 60)]),
        "of another partition": ((gap(50, 60, subject="orders-1"),), (gap(50, 60),), []),
    }
    for name, (first, second, expected) in cases.items():
        found = confirmed(first, second)

        assert [one.evidence["offsets"] for one in found] == [list(one) for one in expected], name
        assert [one.message for one in found] == [f"offsets {one[0]} to {one[1]} are nowhere" for one in expected], name


@pytest.mark.parametrize("code", MOVING)
def test_what_moves_is_looked_at_again_and_what_does_not_move_is_not(code: FindingCode) -> None:
    looks = [[Finding(code, "orders-0", "", about=PartitionSubject(PARTITION, (0, 1)))], []]
    settings = [Finding(FindingCode.BROKER_CONFIG_TIERING_OFF, "broker 1", "")]
    info = [Finding(code, "orders-0", "", severity_override=Severity.INFO)]

    seen, found = look_twice(lambda: looks.pop(0), list)

    assert (seen, found) == ([], [])
    assert are_in_doubt(settings) == are_in_doubt(info) == (FINDING_KINDS[code].severity is Severity.INFO)


def test_the_page_on_safety_lists_what_moves() -> None:
    page = (REPOSITORY / "docs/safety.md").read_text()
    listed = page[page.index("### What moves while it is compared") : page.index("## The guards")]

    assert [code for code in MOVING if f"`{code}`" not in listed] == []


def test_other_segments_are_another_finding() -> None:
    assert confirmed([below("a", "b")], [below("b", "c")]) == [below("b", "c")]
    assert confirmed([below("a")], [below("b")]) == []


def test_a_recovery_says_no_gap_that_the_leader_left_by_going_on() -> None:
    """The store was listed before the leader copied and trimmed: as in 6 of 6 runs on three healthy brokers."""
    cluster = LostMetadata(live=led(0, 20, 40))
    cluster.copy(1, 0, 9)
    cluster.recover()
    first = cluster.plan()
    cluster.copy(2, 10, 19)
    cluster.live = led(0, 30, 40)

    again = first.looked_at_again(cluster.plan().partitions)

    assert {finding.code for finding in first.all_findings()} == {"local-remote-gap"}
    assert first.in_doubt() == {one.partition for one in first.partitions}
    assert again.all_findings() == []


def test_a_recovery_says_a_gap_that_stays() -> None:
    cluster = LostMetadata(live=led(0, 30, 40))
    cluster.copy(1, 0, 9)

    again = cluster.plan().looked_at_again(cluster.plan().partitions)

    assert [(one.code, one.evidence["offsets"]) for one in again.all_findings()] == [("local-remote-gap", [10, 29])]


def test_a_copy_that_ended_after_the_metadata_was_read_is_not_to_be_recovered() -> None:
    cluster = LostMetadata(live=led(0, 20, 40))
    segment = cluster.copy(1, 0, 19)
    cluster.events.append(replace(segment.metadata, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED))
    first = cluster.plan()
    cluster.events.append(updated(1, COPIED))

    again = first.looked_at_again(cluster.plan().partitions)

    assert (first.to_recover, len(first.in_doubt())) == (1, 1)
    assert (again.to_recover, again.all_findings()) == (0, [])

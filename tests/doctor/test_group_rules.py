"""Consumer groups and the logs that they read."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.doctor.test_cluster_rules import PLACE, SOUND
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.doctor.diagnosis import group_findings
from tieredctl.ops.doctor.gathering import with_group_offsets
from tieredctl.ports.cluster import CommittedOffset

LOG_START, LOCAL_START = 5, 20


def found(*offsets: int, topic: str = "t", partition: int = 0) -> list[Finding]:
    """Of groups g0, g1, … that committed these offsets, one each."""
    committed = [CommittedOffset(f"g{number}", topic, partition, offset) for number, offset in enumerate(offsets)]
    place = replace(PLACE, earliest=LOG_START)
    return list(group_findings(replace(SOUND, partitions=[place], group_offsets=committed)))


def test_a_group_is_named_whose_offset_is_not_on_the_leaders_disk() -> None:
    # A group that reads from the leaders disk is not a finding.
    assert found(LOCAL_START, LOCAL_START + 3) == []
    # A group whose offset is in remote storage only is named.
    (finding,) = found(LOCAL_START - 1)
    assert (finding.code, finding.subject) == ("group-reads-remote", "group g0, topic t")
    assert finding.evidence["partitions"] == [
        {"partition": 0, "committedOffset": 19, "earliest": LOG_START, "earliestLocal": LOCAL_START}
    ]
    # A group at the log start has missed nothing.
    assert [finding.code for finding in found(LOG_START)] == ["group-reads-remote"]
    # A group below the log start has missed records.
    (finding,) = found(LOG_START - 2)
    assert finding.code == "group-offset-below-log-start"
    assert "2 offsets were deleted" in finding.message
    # Each group is a finding of its own.
    assert [finding.subject for finding in found(6, 7)] == ["group g0, topic t", "group g1, topic t"]
    # Topics that are not tiered do not matter.
    assert found(0, topic="other") == []
    assert found(0, partition=7) == []


def test_what_may_not_be_seen_or_nobody_reports_is_not_judged() -> None:
    # Groups that may not be seen are reported as unseen.
    def refuse() -> Any:
        raise TieredctlError(ErrorCode.BROKER_REFUSED, "The user may not look at group g.")

    cluster = with_group_offsets(SOUND, SimpleNamespace(committed_offsets=refuse))
    assert [(one.code, one.subject) for one in cluster.not_looked_at] == [("check-not-made", "consumer groups")]
    # A partition whose log nobody reports is not judged.
    cases: list[int] = [0, LOG_START, LOCAL_START]
    for offset in cases:
        unknown = replace(PLACE, earliest=None, earliest_local=None)
        committed = [CommittedOffset("g", "t", 0, offset)]
        assert list(group_findings(replace(SOUND, partitions=[unknown], group_offsets=committed))) == [], offset

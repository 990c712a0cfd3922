"""Releases: what features tell of them, which faults they have, and what lies between two of them."""

from __future__ import annotations

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.model.findings import Severity
from tieredctl.ops.cluster.release import (
    KNOWN_BUGS,
    Presence,
    Release,
    bug_findings,
    release,
    release_of_metadata_version,
)
from tieredctl.ops.doctor.release_change import downgrade_findings, upgrade_findings

BUGS = {bug.issue: bug for bug in KNOWN_BUGS}


@pytest.mark.parametrize(
    ("level", "line"),
    [
        (0, None),
        (1, Release(3, 0)),
        (14, Release(3, 6)),
        (21, Release(3, 9)),
        (25, Release(4, 0)),
        (30, Release(4, 3)),
        (31, Release(4, 4)),
        (33, Release(4, 4)),
    ],
)
def test_a_metadata_version_tells_the_line(level: int, line: Release | None) -> None:
    assert release_of_metadata_version(level) == line


def test_a_metadata_version_of_the_future_tells_nothing() -> None:
    assert release_of_metadata_version(34) is None


@pytest.mark.parametrize("text", ["", "4", "v4.3.1", "4.3.1.0", "4.3-rc1"])
def test_what_is_not_a_release_is_refused(text: str) -> None:
    with pytest.raises(TieredctlError) as refused:
        release(text)

    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("issue", "running", "presence"),
    [
        ("KAFKA-16511", "3.6.2", Presence.YES),
        ("KAFKA-16511", "3.7.0", Presence.YES),
        ("KAFKA-16511", "3.7.1", Presence.NO),
        ("KAFKA-16511", "3.7", Presence.PERHAPS),
        ("KAFKA-16511", "3.8", Presence.NO),
        ("KAFKA-15632", "3.7", Presence.NO),
        ("KAFKA-17062", "3.8.0", Presence.YES),
        ("KAFKA-17062", "3.9.0", Presence.NO),
        ("KAFKA-19530", "4.1.1", Presence.YES),
        ("KAFKA-19530", "4.2.0", Presence.NO),
        ("KAFKA-20732", "4.3.1", Presence.YES),
        ("KAFKA-20732", "4.3.2", Presence.NO),
        ("KAFKA-20732", "4.4", Presence.NO),
        ("KAFKA-15401", "4.4", Presence.PERHAPS),
    ],
)
def test_a_fault_is_there_until_its_fix(issue: str, running: str, presence: Presence) -> None:
    assert BUGS[issue].presence(release(running)) is presence


def severity(issue: str, running: str, *, has_size_retention: bool = False) -> Severity:
    found = bug_findings(release(running), has_size_retention=has_size_retention)
    return next(finding.severity for finding in found if finding.subject == issue)


def test_a_fault_that_the_release_surely_has_is_a_warning() -> None:
    assert severity("KAFKA-17995", "3.9.0") is Severity.WARNING


def test_a_fault_that_the_line_may_have_is_info() -> None:
    assert severity("KAFKA-17995", "3.9") is Severity.INFO


def test_a_fault_that_deletes_by_size_is_a_warning_where_topics_have_a_size() -> None:
    assert severity("KAFKA-20732", "4.3") is Severity.INFO
    assert severity("KAFKA-20732", "4.3", has_size_retention=True) is Severity.WARNING


def test_the_fix_to_take_is_the_nearest() -> None:
    fixed_in = {
        one.subject: one.evidence.get("fixedIn") for one in bug_findings(release("3.7.0"), has_size_retention=False)
    }

    assert (fixed_in["KAFKA-16511"], fixed_in["KAFKA-17062"]) == ("3.7.1", "3.8.1")


def subjects(old: str, new: str) -> set[str]:
    return {one.subject for one in upgrade_findings(release(old), release(new)) if one.code == "upgrade-step"}


def test_an_upgrade_within_a_line_has_no_steps() -> None:
    assert subjects("4.3.1", "4.3.2") == set()


def test_an_upgrade_minds_what_each_line_on_the_way_brings() -> None:
    assert subjects("3.5.2", "3.6.0") == {"producer snapshots", "events of 3.0 to 3.5"}
    assert subjects("3.9.1", "4.3.1") == {"clients", "thread pools", "min ISR of the metadata topic", "followers"}


def test_a_downgrade_below_3_6_loses_what_is_only_remote() -> None:
    grave = {
        one.subject for one in downgrade_findings(release("3.9.1"), release("3.5.2")) if one.severity is Severity.ERROR
    }

    assert grave == {"events", "log directories"}


def test_a_downgrade_brings_faults_back() -> None:
    back = [one.subject for one in downgrade_findings(release("4.2.0"), release("4.1.1")) if one.code == "release-bug"]

    assert sorted(back) == ["KAFKA-14915", "KAFKA-19425", "KAFKA-19523", "KAFKA-19530"]


def test_a_pair_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(TieredctlError) as refused:
        upgrade_findings(release("4.3.1"), release("3.9.1"))

    assert refused.value.exit_code == 2


def test_a_fault_that_no_release_is_confirmed_to_fix_names_no_release_to_go_to() -> None:
    remedies = {
        one.subject: one.remedy
        for name in ("3.7.0", "4.3.1")
        for one in bug_findings(release(name), has_size_retention=False)
    }

    assert remedies["KAFKA-15401"] == "tieredctl explain-code release-bug"
    assert not [remedy for remedy in remedies.values() if remedy != remedy.lower()]

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


def test_a_metadata_version_tells_the_line_and_what_is_no_release_is_refused() -> None:
    # A metadata version tells the line.
    cases: list[tuple[int, Release | None]] = [
        (0, None),
        (1, Release(3, 0)),
        (14, Release(3, 6)),
        (21, Release(3, 9)),
        (25, Release(4, 0)),
        (30, Release(4, 3)),
        (31, Release(4, 4)),
        (33, Release(4, 4)),
    ]
    for level, line in cases:
        assert release_of_metadata_version(level) == line, (level, line)
    # A metadata version of the future tells nothing.
    assert release_of_metadata_version(34) is None
    # What is not a release is refused.
    for text in ["", "4", "v4.3.1", "4.3.1.0", "4.3-rc1"]:
        with pytest.raises(TieredctlError) as refused:
            release(text)
        assert refused.value.exit_code == 2, text


def test_a_fault_is_there_until_its_fix() -> None:
    cases: list[tuple[str, str, Presence]] = [
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
    ]
    for issue, running, presence in cases:
        assert BUGS[issue].presence(release(running)) is presence, (issue, running, presence)


def severity(issue: str, running: str, *, has_size_retention: bool = False) -> Severity:
    found = bug_findings(release(running), has_size_retention=has_size_retention)
    return next(finding.severity for finding in found if finding.subject == issue)


def test_how_grave_a_fault_is() -> None:
    # A fault that the release surely has is a warning.
    assert severity("KAFKA-17995", "3.9.0") is Severity.WARNING
    # A fault that the line may have is info.
    assert severity("KAFKA-17995", "3.9") is Severity.INFO
    # A fault that deletes by size is a warning where topics have a size.
    assert severity("KAFKA-20732", "4.3") is Severity.INFO
    assert severity("KAFKA-20732", "4.3", has_size_retention=True) is Severity.WARNING


def test_the_fix_to_take_is_the_nearest_that_there_is() -> None:
    # The fix to take is the nearest.
    fixed_in = {
        one.subject: one.evidence.get("fixedIn") for one in bug_findings(release("3.7.0"), has_size_retention=False)
    }
    assert (fixed_in["KAFKA-16511"], fixed_in["KAFKA-17062"]) == ("3.7.1", "3.8.1")
    # A fault that no release is confirmed to fix names no release to go to.
    remedies = {
        one.subject: one.remedy
        for name in ("3.7.0", "4.3.1")
        for one in bug_findings(release(name), has_size_retention=False)
    }
    assert remedies["KAFKA-15401"] == "tieredctl explain-code release-bug"
    assert not [remedy for remedy in remedies.values() if remedy != remedy.lower()]


def subjects(old: str, new: str) -> set[str]:
    return {one.subject for one in upgrade_findings(release(old), release(new)) if one.code == "upgrade-step"}


def test_an_upgrade_minds_what_each_line_on_the_way_brings() -> None:
    # An upgrade within a line has no steps.
    assert subjects("4.3.1", "4.3.2") == set()
    assert subjects("3.5.2", "3.6.0") == {"producer snapshots", "events of 3.0 to 3.5"}
    assert subjects("3.9.1", "4.3.1") == {"clients", "thread pools", "min ISR of the metadata topic", "followers"}
    # A pair the wrong way round is refused.
    with pytest.raises(TieredctlError) as refused:
        upgrade_findings(release("4.3.1"), release("3.9.1"))
    assert refused.value.exit_code == 2


def test_a_downgrade_brings_faults_back_and_loses_what_is_only_remote() -> None:
    # A downgrade below 3 6 loses what is only remote.
    grave = {
        one.subject for one in downgrade_findings(release("3.9.1"), release("3.5.2")) if one.severity is Severity.ERROR
    }
    assert grave == {"events", "log directories"}
    # A downgrade brings faults back.
    back = [one.subject for one in downgrade_findings(release("4.2.0"), release("4.1.1")) if one.code == "release-bug"]
    assert sorted(back) == ["KAFKA-14915", "KAFKA-19425", "KAFKA-19523", "KAFKA-19530"]

"""`explain-code` has a page for each code, and knows no other."""

from __future__ import annotations

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.errors import ErrorCode, ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import FINDING_KINDS


@pytest.mark.parametrize("code", [*FINDING_KINDS])
def test_a_findings_page_is_that_of_the_documentation(code: FindingCode, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("explain-code", code)

    first, _, meaning = outcome.out.partition("\n\n")
    assert (outcome.exit_code, outcome.err) == (ExitCode.CLEAN, "")
    assert first == f"{code} (finding)"
    assert meaning.startswith(f"**{FINDING_KINDS[code].severity.label}**")
    assert "###" not in meaning


def test_an_errors_page_has_its_exit_code_and_hint(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("explain-code", "clock-skew", "-o", "json")

    (item,) = outcome.document()["items"]
    assert item == {
        "code": "clock-skew",
        "kind": "error",
        "severity": None,
        "meaning": f"Ends a command with exit code 1. {ErrorCode.CLOCK_SKEW.hint}",
    }


def test_what_is_both_has_both_pages(tieredctl: Tieredctl) -> None:
    kinds = [item["kind"] for item in tieredctl("explain-code", "unreadable", "-o", "json").document()["items"]]

    assert kinds == ["finding", "error"]


def test_an_unknown_code_is_refused_with_the_nearest(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("explain-code", "object-mising")

    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    assert "Did you mean object-missing?" in outcome.err


@pytest.mark.parametrize("typed", ["", "\x1b[31m", "x" * 100_000])
def test_a_hostile_code_is_refused_in_a_sentence(typed: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("explain-code", typed)

    assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
    assert "\x1b" not in outcome.err

"""`explain-code` and docs/findings.md have a page for each code, and know no other."""

from __future__ import annotations

import re

from tests.cli.command_line import REPOSITORY, Tieredctl
from tieredctl.errors import ErrorCode, ExitCode
from tieredctl.model.findings import FINDING_KINDS


def test_a_findings_page_is_that_of_the_documentation(tieredctl: Tieredctl) -> None:
    for code, kind in FINDING_KINDS.items():
        outcome = tieredctl("explain-code", code)

        first, _, meaning = outcome.out.partition("\n\n")
        assert (outcome.exit_code, outcome.err) == (ExitCode.CLEAN, ""), code
        assert first == f"{code} (finding)"
        assert meaning.startswith(f"**{kind.severity.label}**"), code
        assert "###" not in meaning, code
    assert tieredctl("explain-code", "OBJECT-MISSING") == tieredctl("explain-code", "object-missing")


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
    for typed in ("object-mising", "", "\x1b[31m", "x" * 100_000):
        outcome = tieredctl("explain-code", typed)

        assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, ""), typed[:9]
        assert "\x1b" not in outcome.err
        assert ("Did you mean object-missing?" in outcome.err) == (typed == "object-mising")


def test_the_page_of_findings_has_each_code_with_its_severity() -> None:
    page = (REPOSITORY / "docs" / "findings.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\S+)\n\*\*(\w+)\*\*", page, re.MULTILINE))

    assert sections == {code: kind.severity.label for code, kind in FINDING_KINDS.items()}
    assert sorted(re.findall(r"^### (.+)$", page, re.MULTILINE)) == sorted(FINDING_KINDS)

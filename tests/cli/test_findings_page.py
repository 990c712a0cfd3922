"""docs/findings.md tells of every code, of no other, and of the severity that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from tieredctl.model.findings import FINDING_KINDS

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
SECTION = re.compile(r"^### (?P<code>\S+)\n\*\*(?P<severity>\w+)\*\*", re.MULTILINE)


def test_every_finding_code_has_its_section() -> None:
    said = {section["code"]: section["severity"] for section in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}
    assert said == {code: kind.severity.label for code, kind in FINDING_KINDS.items()}


def test_every_heading_is_a_section_of_a_code() -> None:
    headings = re.findall(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(FINDING_KINDS)

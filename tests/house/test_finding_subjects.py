"""Findings are told apart by what they are about, as values; their evidence is shown, and decides nothing."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN_OR_WRITTEN = {
    "tieredctl/model/findings.py",
    "tieredctl/ops/doctor/node_rules.py",
    "spark/tieredctl_spark/segment_rows.py",
}
"""Where it becomes a document, gets another field, or is read back from what was written."""


def test_nothing_is_decided_by_the_evidence_of_a_finding() -> None:
    sources = [path for folder in ("tieredctl", "spark", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))]

    reading = {str(path.relative_to(ROOT)) for path in sources if _reads_evidence(ast.parse(path.read_text("utf-8")))}

    assert reading == SHOWN_OR_WRITTEN


def _reads_evidence(tree: ast.AST) -> bool:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(
        isinstance(node, ast.Attribute) and node.attr == "evidence" and id(node) not in called
        for node in ast.walk(tree)
    )

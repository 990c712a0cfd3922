"""Findings as rows of Arrow, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tieredctl.model.findings import Finding

FINDING_TYPE = pa.struct(
    {
        "code": pa.string(),
        "severity": pa.string(),
        "subject": pa.string(),
        "message": pa.string(),
        "evidence": pa.string(),
        "remedy": pa.string(),
    }
)
"""The fields of `Finding.document`; the evidence as JSON, since every code has its own."""


def finding_row(finding: Finding) -> dict[str, Any]:
    """A finding as FINDING_TYPE."""
    document = finding.document()
    return document | {"evidence": json.dumps(document["evidence"])}


def finding_table(findings: Iterable[Finding]) -> pa.Table:
    """Findings, a row each."""
    return pa.Table.from_pylist([finding_row(finding) for finding in findings], pa.schema(list(FINDING_TYPE)))


def read_finding(row: Mapping[str, Any]) -> Finding:
    """The finding of a row that `finding_row` made, as `Finding.read` gives it."""
    return Finding.read({**row, "evidence": json.loads(row["evidence"])})

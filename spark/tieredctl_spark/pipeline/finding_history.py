"""Findings that remember: one row for each code, subject and offsets, whatever its message says from one look to the
next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from tieredctl.model.finding_kind import Severity
from tieredctl.model.finding_subjects import MetadataSubject, PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.verification.report import Level
from tieredctl_spark.finding_rows import finding_row
from tieredctl_spark.tables.kinds import FINDINGS

_Identity = tuple[str, str, int | None, int | None]
_LEVELS = [level.value for level in Level]
"""From the shallowest to the deepest."""


class LookKind(StrEnum):
    """What found something: the same kind of look, as deep, has to be complete to say that it is gone."""

    VERIFICATION = "verification"
    SCAN = "scan"


@dataclass(frozen=True, slots=True)
class FindingsOfLook:
    """What one kind of look found."""

    kind: LookKind
    level: Level
    findings: Sequence[Finding]
    is_complete: bool
    """Whether it looked at everything, by whole metadata: what it did not find again is not there any more."""


def merged_findings(known: pa.Table, looks: Sequence[FindingsOfLook], now_ms: int) -> pa.Table:
    """By `FINDINGS.columns`: those of earlier looks, and what the looks of now say of them."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    rows = {_identity(row): row for row in known.select(FINDINGS.columns.names).to_pylist()}
    seen: dict[_Identity, dict[str, Any]] = {}
    for look in looks:
        for row in _rows(look):
            # Both looks read the metadata: what the first one says of it, the second says again.
            seen.setdefault(_identity(row), row)
    complete = {look.kind: _LEVELS.index(look.level) for look in looks if look.is_complete}
    for identity, row in rows.items():
        deepest = complete.get(row["look"], -1)
        if identity not in seen and row["resolved"] is None and deepest >= _LEVELS.index(row["level"]):
            row["resolved"] = now
    for identity, row in seen.items():
        first_seen = rows[identity]["firstSeen"] if identity in rows else now
        rows[identity] = row | {"firstSeen": first_seen, "lastSeen": now, "resolved": None}
    ordered = sorted(rows.values(), key=lambda row: tuple((part is not None, part) for part in _identity(row)))
    return pa.Table.from_pylist(ordered, FINDINGS.columns)


def _identity(row: Mapping[str, Any]) -> _Identity:
    return row["code"], row["subject"], row["firstOffset"], row["lastOffset"]


def _rows(look: FindingsOfLook) -> Iterable[dict[str, Any]]:
    """One for each identity: several causes of one code and subject are one."""
    found: dict[_Identity, list[dict[str, Any]]] = {}
    for finding in look.findings:
        row = finding_row(finding)
        first, last = _offsets(finding)
        row |= {"firstOffset": first, "lastOffset": last, "look": look.kind.value, "level": look.level.value}
        found.setdefault(_identity(row), []).append(row)
    return (same[0] if len(same) == 1 else _joined(same) for same in found.values())


def _joined(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    gravest = max(rows, key=lambda row: Severity[row["severity"].upper()])
    messages = "; ".join(dict.fromkeys(row["message"] for row in rows))
    return gravest | {"message": messages, "evidence": json.dumps([json.loads(row["evidence"]) for row in rows])}


def _offsets(finding: Finding) -> tuple[int | None, int | None]:
    about = finding.about
    if isinstance(about, MetadataSubject | PartitionSubject) and about.offsets is not None:
        return about.offsets
    if isinstance(about, MetadataSubject):
        return about.metadata_offset, about.metadata_offset
    return None, None

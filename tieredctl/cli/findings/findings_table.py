"""Findings as the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tieredctl.cli.findings.remedies import remedy_shown
from tieredctl.cli.output import Item, TableColumn
from tieredctl.model.findings import Finding


def _evidence(name: str) -> TableColumn:
    return TableColumn(name.upper(), lambda item: item["evidence"].get(name))


def _offsets(item: Item) -> str | None:
    offsets = item["evidence"].get("offsets")
    return f"{offsets[0]}..{offsets[1]}" if offsets else None


FINDING_COLUMNS = (
    TableColumn("SEVERITY", "severity"),
    TableColumn("CODE", "code"),
    TableColumn("SUBJECT", "subject"),
    _evidence("position"),
    TableColumn("OFFSETS", _offsets),
    TableColumn("MESSAGE", "message"),
    TableColumn("KEY", lambda item: item["evidence"].get("key"), wide=True),
    TableColumn("REMEDY", lambda item: remedy_shown(item["remedy"]), wide=True),
)
FINDING_FIELDS = ("code", "severity", "subject", "message", "evidence", "remedy")


@dataclass(frozen=True, slots=True)
class FindingDocuments:
    """Findings as items, each made when it is read."""

    findings: Sequence[Finding]

    def __iter__(self) -> Iterator[Item]:
        return (finding.document() for finding in self.findings)

    def __len__(self) -> int:
        return len(self.findings)

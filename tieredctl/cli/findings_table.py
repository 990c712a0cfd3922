"""Findings as the rows of a table."""

from __future__ import annotations

from tieredctl.cli.output import Item, TableColumn


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
    TableColumn("REMEDY", "remedy", wide=True),
)
FINDING_FIELDS = ("code", "severity", "subject", "message", "evidence", "remedy")

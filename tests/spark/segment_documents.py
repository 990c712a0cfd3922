"""Rows of `tiered_segments` as `metadata segments -o json` has them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]
_EPOCH = datetime.fromtimestamp(0, UTC)


def documents_of(rows: Iterable[Row]) -> list[Row]:
    """In the command's order."""
    found = [_document(row) for row in rows]
    return sorted(found, key=lambda one: [one[name] for name in ("topic", "topicId", "partition", "startOffset")])


def _document(row: Row) -> Row:
    authors = {name: row[name] for name in ("brokerId", "leaderEpoch") if row[name] is not None}
    assert len(authors) == 1, row
    custom = row["customMetadata"]
    said = {name: row[name] for name in row if name not in ("brokerId", "leaderEpoch", "customMetadata")}
    times = {f"{name}Ms": _milliseconds(said.pop(name)) for name in ("maxTimestamp", "eventTimestamp")}
    return said | times | authors | {"customMetadata": None if custom is None else b64encode(custom).decode()}


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(milliseconds=1)

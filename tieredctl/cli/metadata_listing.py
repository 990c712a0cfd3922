"""What a stream of metadata says, as a listing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.ops.metadata.event_stream import EventStream


def metadata_listing(
    kind: str,
    stream: EventStream,
    items: Iterable[Item],
    columns: tuple[TableColumn, ...],
    fields: tuple[str, ...],
    **summary: Any,
) -> Listing:
    """A listing whose summary has the stream's findings, once the items were read."""
    counted = items if isinstance(items, Sized) else _Counted(items)

    def totals() -> dict[str, Any]:
        return {"items": _count_of(counted), **summary, "findings": finding_documents(stream.findings)}

    return Listing(kind, stream.source.describe, counted, columns, totals, fields)


class _Counted:
    """Items that are read once. They have no length: who sees one would read them twice."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self.count = 0

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self.count += 1
            yield item


def _count_of(items: Sized | _Counted) -> int:
    return items.count if isinstance(items, _Counted) else len(items)

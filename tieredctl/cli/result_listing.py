"""Listings of declared rows: their documents, the header of their CSV and their table follow from the declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tieredctl.cli.output import Item, Listing, TableColumn, known
from tieredctl.cli.shown_quantities import ago, shown_age, shown_size
from tieredctl.model.result_row import Quantity, ResultRow

_PEOPLE_READ: Mapping[Quantity | None, Callable[[Any], str]] = {
    Quantity.SIZE: shown_size,
    Quantity.MOMENT: ago,
    Quantity.AGE: shown_age,
}


def result_listing(
    kind: str,
    source: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    row: type[ResultRow],
    rows: Iterable[ResultRow],
    summary: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    **texts: Callable[[Item], object],
) -> Listing:
    """A listing of rows of this class; `texts` as in `columns_of`."""
    documents = (one.document() for one in rows)
    items = list(documents) if isinstance(rows, Sequence) else documents
    return Listing(kind, source, items, columns_of(row, **texts), summary, tuple(row.json_names().values()))


def columns_of(row: type[ResultRow], **texts: Callable[[Item], object]) -> tuple[TableColumn, ...]:
    """The columns of a table of such rows; `texts` make that of an attribute from the whole document."""
    names = row.json_names()
    return tuple(
        TableColumn(
            column.heading or attribute.strip("_").upper().replace("_", "-"),
            texts.get(attribute, known(names[attribute]) if column.may_be_unknown else names[attribute]),
            column.wide,
            _PEOPLE_READ.get(column.quantity),
            column.importance,
        )
        for attribute, column in row.columns().items()
    )

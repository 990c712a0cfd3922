"""A row of a command's result, declared once: a frozen dataclass, whose attributes in camelCase are the names in JSON
and in CSV, and whose annotations say what of it a table shows.

In a table, columns that only `-o wide` shows come after the others, and those of a subclass after its base's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum, auto
from functools import cache
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Value = TypeVar("_Value")
_Row = TypeVar("_Row", bound="DataclassInstance")


class Quantity(Enum):
    """A number or text that people read in another way than programs."""

    SIZE = auto()
    """Bytes."""
    MOMENT = auto()
    """ISO 8601, or milliseconds since the epoch."""
    AGE = auto()
    """Milliseconds."""


@dataclass(frozen=True, slots=True)
class Column:
    """How a table shows a field, if not under its own name, as it is."""

    heading: str | None = None
    quantity: Quantity | None = None
    wide: bool = False
    importance: int = 1
    """As in `TableColumn`."""
    may_be_unknown: bool = False
    """Whether None is a value that is not known, rather than one that does not exist."""
    after: str | None = None
    """The attribute whose column it follows, where that is not the one before it."""


Wide = Annotated[_Value, Column(wide=True)]
Size = Annotated[_Value, Column("SIZE", Quantity.SIZE)]
SizeOrUnknown = Annotated[int | None, Column("SIZE", Quantity.SIZE, may_be_unknown=True)]
Main = Annotated[_Value, Column(importance=2)]
"""A column that is never left out."""
JsonOnly = Annotated[_Value, None]
"""A field that tables do not have."""


def camel_case(attribute: str) -> str:
    """An attribute's name in JSON; one that ends with `_` would be a word of Python without it."""
    first, *words = attribute.split("_")
    return first + "".join(map(str.capitalize, words))


@cache
def json_names(row: type[DataclassInstance]) -> Mapping[str, str]:
    """The JSON name of each attribute, in the order of JSON and CSV."""
    return {field.name: camel_case(field.name) for field in fields(row)}


def document_of(row: DataclassInstance) -> dict[str, Any]:
    """A row as JSON has it."""
    return {name: getattr(row, attribute) for attribute, name in json_names(type(row)).items()}


def extended(make: type[_Row], row: DataclassInstance, **more: object) -> _Row:
    """A row of a subclass of this row's class, with `more` attributes."""
    return make(**{attribute: getattr(row, attribute) for attribute in json_names(type(row))}, **more)


def table_columns(row: type[DataclassInstance]) -> Mapping[str, Column]:
    """The columns of a table by their attributes, from left to right."""
    columns: dict[str, Column] = {}
    for owner in reversed(row.__mro__):
        columns |= sorted(_own_columns(row, owner), key=lambda one: one[1].wide)
    order = list(columns)
    for attribute, column in columns.items():
        if column.after is not None:
            order.remove(attribute)
            order.insert(order.index(column.after) + 1, attribute)
    return {attribute: columns[attribute] for attribute in order}


def _own_columns(row: type[DataclassInstance], owner: type) -> Iterator[tuple[str, Column]]:
    annotated = get_type_hints(row, include_extras=True)
    for attribute in get_annotations(owner):
        column = next(iter(getattr(annotated[attribute], "__metadata__", ())), Column())
        if column is not None:
            yield attribute, column

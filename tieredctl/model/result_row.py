"""Rows of commands' results, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum, auto
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, TypeVar, get_type_hints

_Value = TypeVar("_Value")


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


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of a result: a frozen dataclass, whose attributes in camelCase are the names in JSON and in CSV, and whose
    annotations say what of it a table shows. There, columns of `-o wide` alone come after the others, and those of a
    subclass after its base's."""

    def document(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {name: getattr(self, attribute) for attribute, name in self.json_names().items()}

    def extended(self, row: type[_Row], **more: object) -> _Row:
        """A row of a subclass of this row's class, with `more` attributes."""
        return row(**{attribute: getattr(self, attribute) for attribute in self.json_names()}, **more)

    @classmethod
    @cache
    def json_names(cls) -> Mapping[str, str]:
        """The JSON name of each attribute, in the order of JSON and CSV."""
        return {field.name: camel_case(field.name) for field in fields(cls)}

    @classmethod
    def columns(cls) -> Mapping[str, Column]:
        """The columns of a table by their attributes, from left to right."""
        hints = get_type_hints(cls, include_extras=True)
        columns: dict[str, Column] = {}
        for owner in reversed(cls.__mro__):
            shown = [(name, _column(hints[name])) for name in get_annotations(owner)]
            columns |= sorted(((name, one) for name, one in shown if one is not None), key=lambda each: each[1].wide)
        order = list(columns)
        for attribute, column in columns.items():
            if column.after is not None:
                order.remove(attribute)
                order.insert(order.index(column.after) + 1, attribute)
        return {attribute: columns[attribute] for attribute in order}


_Row = TypeVar("_Row", bound=ResultRow)


def _column(hint: object) -> Column | None:
    """None for a field that tables do not have."""
    return next(iter(getattr(hint, "__metadata__", ())), Column())

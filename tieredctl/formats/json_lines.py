"""Values as lines of JSON: each kind of line has a table of its fields, by which it is written and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

from tieredctl.errors import DecodeError
from tieredctl.model.result_row import camel_case

API_VERSION = "tieredctl/v1"
# It escapes what is not ASCII, also lone surrogates, which stand for file names that are not UTF-8.
_json_text = json.JSONEncoder(separators=(",", ":")).encode
_Value = TypeVar("_Value")


class LineField(NamedTuple):
    """A field of a line: its name there, and how its value is read and written."""

    name: str
    read: Callable[[Any], Any]
    """Raises TypeError or ValueError for a value of another kind."""
    write: Callable[[Any], Any] | None = None
    """None where JSON takes the value as it is."""
    null: bool = False
    """Whether None is written as null."""
    lacking: bool = False
    """Whether a line without it is read as None. None is then also written by leaving it out, unless `null`."""

    @property
    def is_left_out(self) -> bool:
        """Whether it is not written where it is None."""
        return self.lacking and not self.null


def number(value: object) -> int:
    """A whole number. Raises TypeError for anything else."""
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return value


def text(value: object) -> str:
    """Raises TypeError for anything else."""
    if type(value) is not str:
        raise TypeError(f"{value!r} is not text")
    return value


_READERS: Mapping[Any, Callable[[Any], Any]] = {int: number, str: text}


def line_fields(make: type, *, none_is_left_out: bool = False, **others: LineField) -> dict[str, LineField]:
    """A field for each attribute of a class, in camelCase, by the attribute's type: numbers, texts and enumerations,
    some of which may be None; `others` are of other types, or differ."""
    fields = {}
    for attribute, annotated in get_type_hints(make).items():
        is_optional, types = False, [annotated]
        if isinstance(annotated, UnionType):
            is_optional, types = True, [one for one in get_args(annotated) if one is not NoneType]
        null, lacking = is_optional and not none_is_left_out, is_optional and none_is_left_out
        read = _READERS.get(types[0], types[0])
        fields[attribute] = others.get(attribute) or LineField(camel_case(attribute), read, null=null, lacking=lacking)
    return fields


class LineFormat(Generic[_Value]):
    """How one kind of line is written and read."""

    def __init__(self, make: Callable[..., _Value], kind: str | None = None, /, **fields: LineField) -> None:
        """`fields` in the order of the line, each by the attribute of what `make` makes. A line that is the first of
        its file says its `kind` before them."""
        self._make = make
        self._kind = kind
        self._head = {} if kind is None else {"kind": kind, "apiVersion": API_VERSION}
        self._fields = fields
        self._values = attrgetter(*fields)
        self._names = [field.name for field in fields.values()]
        self._is_plain = all(field.write is None and not field.is_left_out for field in fields.values())

    def encode(self, value: _Value) -> bytes:
        """The line of a value, with its end."""
        return line_of(self._head | self.written(value))

    def decode(self, line: bytes) -> _Value:
        """Raises DecodeError."""
        return self.read(fields_of(line, self._kind))

    def written(self, value: _Value) -> dict[str, Any]:
        """The fields of a value, as a line has them."""
        values = self._values(value)
        if self._is_plain:
            return dict(zip(self._names, values, strict=True))
        return {
            field.name: one if one is None or field.write is None else field.write(one)
            for field, one in zip(self._fields.values(), values, strict=True)
            if not (one is None and field.is_left_out)
        }

    def read(self, fields: Mapping[str, Any]) -> _Value:
        """The value of a line that has these fields. Raises DecodeError."""
        try:
            values = {}
            for attribute, (name, read, _, null, lacking) in self._fields.items():
                value = fields.get(name) if lacking else fields[name]
                values[attribute] = None if value is None and (null or lacking) else read(value)
            return self._make(**values)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DecodeError(f"a field is missing or has the wrong type ({error})", 0) from None


def line_of(fields: Mapping[str, Any]) -> bytes:
    """Fields as a line, with its end."""
    return _json_text(fields).encode("ascii") + b"\n"


def fields_of(line: bytes, kind: str | None = None) -> dict[str, Any]:
    """A line's fields; a line that states its kind must be of this kind and version. Raises DecodeError."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise DecodeError("a line is not JSON", 0) from None
    if not isinstance(fields, dict) or (kind is not None and fields.get("kind") != kind):
        raise DecodeError(f"it is not a {kind or 'JSON object'}", 0)
    if kind is not None and fields.get("apiVersion") != API_VERSION:
        raise DecodeError(f"it is of version {fields.get('apiVersion')!r}, not {API_VERSION}", 0)
    return fields

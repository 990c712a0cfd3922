"""How a format is described: a struct of named fields, read by `wire.py` one at a time and by `columns.py` in bulk.

Two encodings, as in Kafka's message generator: *flexible* structs use compact lengths and end with a section of
tagged fields; the others use fixed-width lengths and have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

UNKNOWN_TAGS = "unknownTaggedFields"
"""Where a decoded struct keeps tagged fields that its schema does not know: a list of (tag, bytes)."""


class Primitive(Enum):
    """Fixed-width, big-endian types: (code of the struct module, width in bytes)."""

    BOOL = ("?", 1)
    INT8 = ("b", 1)
    INT16 = ("h", 2)
    UINT16 = ("H", 2)
    INT32 = ("i", 4)
    UINT32 = ("I", 4)
    INT64 = ("q", 8)
    FLOAT64 = ("d", 8)
    UUID = ("16s", 16)

    @property
    def code(self) -> str:
        return self.value[0]

    @property
    def width(self) -> int:
        return self.value[1]


class Length(Enum):
    """Types that carry their own length; in a flexible struct it is an unsigned varint of length + 1."""

    STRING = "string"
    NULLABLE_STRING = "nullable string"
    BYTES = "bytes"
    NULLABLE_BYTES = "nullable bytes"


@dataclass(frozen=True)
class Array:
    """An array of values of one type, preceded by its count. A null one has a count of -1."""

    element: Primitive | Length | Struct
    nullable: bool = False


@dataclass(frozen=True)
class NullableStruct:
    """A struct that may be null, preceded by a byte: 1, or -1 for null."""

    struct: Struct


FieldType: TypeAlias = "Primitive | Length | Array | Struct | NullableStruct"


@dataclass(frozen=True)
class Field:
    """A named field. With `tag` it lives in the tagged section and is absent there while it has its `default`."""

    name: str
    type: FieldType
    tag: int | None = None
    default: Any = dataclass_field(default=None, hash=False)  # an array's is a list


@dataclass(frozen=True)
class Struct:
    """Fields in order. `name` is for error messages and for the paths of tagged fields."""

    name: str
    fields: tuple[Field, ...]
    flexible: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Counted once: readers are found by it, record by record."""
        return hash((self.name, self.fields, self.flexible))

    @cached_property
    def positional(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.tag is None)

    @cached_property
    def tagged(self) -> Mapping[int, Field]:
        return {field.tag: field for field in self.fields if field.tag is not None}

    @cached_property
    def fixed_format(self) -> str:
        """The struct module's format of a struct with only fixed-width fields (an index entry, a batch header).

        Raises TypeError where a field has no fixed width.
        """
        codes = []
        for field in self.fields:
            if not isinstance(field.type, Primitive):
                raise TypeError(f"{self.name}.{field.name} has no fixed width")
            codes.append(field.type.code)
        return ">" + "".join(codes)

    def without(self, *names: str) -> Struct:
        """The same struct before some fields were added to it."""
        return Struct(self.name, tuple(field for field in self.fields if field.name not in names), self.flexible)

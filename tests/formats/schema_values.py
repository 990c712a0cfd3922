"""Any values that a schema allows, for properties that hold for all of them."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tieredctl.formats.schema import UNKNOWN_TAGS, Array, Field, FieldType, Length, NullableStruct, Primitive, Struct
from tieredctl.model.ids import uuid_text


def whole_numbers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


INT16, INT32, INT64 = whole_numbers(16), whole_numbers(32), whole_numbers(64)
POSITIVE_INT32, POSITIVE_INT64 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
UUIDS = st.binary(min_size=16, max_size=16)
UUID_TEXTS = UUIDS.map(uuid_text)
TOPICS = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=249)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)

PRIMITIVES: Mapping[Primitive, st.SearchStrategy[object]] = {
    Primitive.BOOL: st.booleans(),
    Primitive.INT8: whole_numbers(8),
    Primitive.INT16: INT16,
    Primitive.UINT16: whole_numbers(16, signed=False),
    Primitive.INT32: INT32,
    Primitive.UINT32: whole_numbers(32, signed=False),
    Primitive.INT64: INT64,
    Primitive.FLOAT64: st.floats(allow_nan=False),
    Primitive.UUID: UUIDS,
}
LENGTHS: Mapping[Length, st.SearchStrategy[object]] = {
    Length.STRING: TEXTS,
    Length.NULLABLE_STRING: st.none() | TEXTS,
    Length.BYTES: st.binary(max_size=40),
    Length.NULLABLE_BYTES: st.none() | st.binary(max_size=40),
}


def values_of(schema: Struct) -> st.SearchStrategy[dict[str, Any]]:
    """Any values of a struct; in a flexible one with tagged fields that the schema does not know."""
    known = st.fixed_dictionaries({field.name: field_values(field) for field in schema.fields})
    if not schema.flexible:
        return known
    tags = st.integers(0, 2**32 - 1).filter(lambda tag: tag not in schema.tagged)
    unknown = st.dictionaries(tags, st.binary(max_size=8), max_size=2).map(lambda found: sorted(found.items()))
    return st.builds(lambda values, tagged: values | ({UNKNOWN_TAGS: tagged} if tagged else {}), known, unknown)


def field_values(field: Field) -> st.SearchStrategy[Any]:
    if field.tag is None:
        return type_values(field.type)
    return st.just(field.default) | type_values(field.type)


def type_values(kind: FieldType) -> st.SearchStrategy[Any]:
    if isinstance(kind, Array):
        values = st.lists(type_values(kind.element), max_size=3)
        return st.none() | values if kind.nullable else values
    if isinstance(kind, Struct):
        return values_of(kind)
    if isinstance(kind, NullableStruct):
        return st.none() | values_of(kind.struct)
    return PRIMITIVES[kind] if isinstance(kind, Primitive) else LENGTHS[kind]


def every_type(*, flexible: bool) -> Struct:
    """A struct with a field, an array and a null array of each type; in a flexible one as tagged fields, too."""
    inner = Struct("Inner", (Field("Number", Primitive.INT16), Field("Text", Length.STRING)), flexible)
    elements: list[Primitive | Length | Struct] = [*Primitive, *Length, inner]
    kinds: list[FieldType] = [*elements, NullableStruct(inner)]
    kinds += [Array(element, nullable) for element in elements for nullable in (False, True)]
    fields = [Field(f"f{number}", kind) for number, kind in enumerate(kinds)]
    tagged = [Field(f"t{tag}", kind, tag, default_of(kind)) for tag, kind in enumerate(kinds)] if flexible else []
    return Struct("Outer", (*fields, *tagged), flexible)


def default_of(kind: FieldType) -> Any:
    """One that is kept by reference, where there is one, so that what shares it shows."""
    if isinstance(kind, Array):
        return None if kind.nullable else []
    return {"Number": 0, "Text": ""} if isinstance(kind, Struct) else None

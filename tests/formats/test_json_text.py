"""JSON straight from bytes is, to the character, what goes through values; whatever else is left to those."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.formats.schema_values import every_type, values_of
from tieredctl.errors import DecodeError
from tieredctl.formats.json_text import RARE, json_writer
from tieredctl.formats.kafka_json import json_document
from tieredctl.formats.kraft_log import KraftRecordType
from tieredctl.formats.schema import Array, Field, Length, Primitive, Struct
from tieredctl.formats.wire import read_whole, writer

SCHEMAS = {kind.name: kind.message.schema(kind.message.latest_version) for kind in KraftRecordType}
SCHEMAS["all types"] = every_type(flexible=True)
TEXTS = Struct("Texts", (Field("A", Array(Length.STRING)), Field("B", Length.NULLABLE_STRING)), flexible=True)
TAGGED_FIRST = Struct(
    "TaggedFirst",
    (Field("A", Primitive.INT32, tag=0, default=7), Field("B", Array(Primitive.INT32), tag=1, default=[])),
    flexible=True,
)


def by_values(schema: Struct, data: bytes) -> str | None:
    """None where the bytes are not a value."""
    try:
        return json.dumps(json_document(schema, read_whole(schema, data)))
    except DecodeError:
        return None


def from_bytes(schema: Struct, data: bytes) -> str | None:
    """None where that is left to the values."""
    try:
        return json_writer(schema)(data, 0)
    except RARE:
        return None


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
@settings(max_examples=examples(6))
@given(data=st.data())
def test_any_values(schema: Struct, data: st.DataObject) -> None:
    encoded = writer(schema)(data.draw(values_of(schema)))

    assert from_bytes(schema, encoded) in (None, by_values(schema, encoded))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
@settings(max_examples=examples(6))
@given(data=st.data())
def test_damaged_values(schema: Struct, data: st.DataObject) -> None:
    encoded = bytearray(writer(schema)(data.draw(values_of(schema))))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])

    for damaged in (bytes(encoded), cut):
        assert from_bytes(schema, damaged) in (None, by_values(schema, damaged))


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (TEXTS, {"A": [], "B": None}),
        (TEXTS, {"A": ["", "a" * 126, "a" * 127, "é" * 8000], "B": '"\\\n\x7f\u2028😀'}),
        (TAGGED_FIRST, {"A": 7, "B": []}),
        (TAGGED_FIRST, {"A": 8, "B": []}),
        (TAGGED_FIRST, {"A": 7, "B": [1, -2]}),
        (Struct("Nothing", (), flexible=True), {}),
    ],
)
def test_what_is_usual_is_not_left_to_the_values(schema: Struct, values: dict[str, Any]) -> None:
    encoded = writer(schema)(values)

    assert from_bytes(schema, encoded) == by_values(schema, encoded) is not None


def test_a_tagged_field_that_has_its_default_is_left_out_even_where_it_was_written() -> None:
    assert from_bytes(TAGGED_FIRST, bytes.fromhex("02 00 04 00000007 01 01 01")) == "{}"


def test_a_struct_that_is_not_flexible_is_refused() -> None:
    with pytest.raises(TypeError, match="Fixed"):
        json_writer(Struct("Fixed", (Field("A", Primitive.INT8),)))

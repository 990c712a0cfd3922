"""Decoded values as JSON, named and spelled as Kafka's generated JsonConverters do."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any

from tieredctl.formats.schema import UNKNOWN_TAGS, Array, Field, FieldType, NullableStruct, Primitive, Struct
from tieredctl.model.ids import uuid_text


def json_document(schema: Struct, values: Mapping[str, Any]) -> dict[str, Any]:
    """A struct's fields under their names in camel case: ids as 22 characters, bytes as base64.

    A tagged field that has its default is left out, as Kafka does; tagged fields that the schema does not know follow
    as `unknownTaggedFields`.
    """
    document = {
        json_name(field.name): _json_value(field.type, values[field.name])
        for field in schema.fields
        if not _is_left_out(field, values[field.name])
    }
    if values.get(UNKNOWN_TAGS):
        document[UNKNOWN_TAGS] = [{"tag": tag, "data": base64_text(data)} for tag, data in values[UNKNOWN_TAGS]]
    return document


def json_name(name: str) -> str:
    """A field's name in JSON: the schema's with a lower-case first letter."""
    return name[:1].lower() + name[1:]


def base64_text(data: bytes) -> str:
    """Bytes as in Kafka's JSON: standard base64, padded."""
    return b64encode(data).decode("ascii")


def _is_left_out(field: Field, value: Any) -> bool:
    return field.tag is not None and value == field.default


def _json_value(kind: FieldType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_json_value(kind.element, element) for element in value]
    if isinstance(kind, Struct):
        return json_document(kind, value)
    if isinstance(kind, NullableStruct):
        return json_document(kind.struct, value)
    if kind is Primitive.UUID:
        return uuid_text(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")  # JSON has no such numbers
    return base64_text(value) if isinstance(value, bytes) else value

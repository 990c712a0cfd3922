"""Decoded values as JSON, named and spelled as Kafka's generated JsonConverters do."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
from math import isfinite
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import UNKNOWN_TAGS, Array, Field, FieldType, Length, NullableStruct, Primitive, Struct
from tieredctl.model.ids import uuid_bytes, uuid_text


def json_document(schema: Struct, values: Mapping[str, Any]) -> dict[str, Any]:
    """A struct's fields under their names in camel case: ids as 22 characters, bytes as base64.

    A tagged field that has its default is left out, as Kafka does; tagged fields that the schema does not know follow
    as `unknownTaggedFields`.
    """
    document = {
        json_name(field.name): json_value(field.type, values[field.name])
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


def json_value(kind: FieldType, value: Any) -> Any:
    """A field's value as in `json_document`."""
    if value is None:
        return None
    if isinstance(kind, Array):
        return [json_value(kind.element, element) for element in value]
    if isinstance(kind, Struct):
        return json_document(kind, value)
    if isinstance(kind, NullableStruct):
        return json_document(kind.struct, value)
    if kind is Primitive.UUID:
        return uuid_text(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")  # JSON has no such numbers
    return base64_text(value) if isinstance(value, bytes) else value


def values_of(schema: Struct, document: object) -> dict[str, Any]:
    """A struct's values from such a document, as Kafka's JsonConverters read them: a field that has no tag must be
    there, and names that the schema does not know are passed over. Raises DecodeError."""
    if not isinstance(document, Mapping):
        raise DecodeError(f"{schema.name} is not a JSON object", 0)
    values = {}
    for field in schema.fields:
        where, name = f"{schema.name}.{field.name}", json_name(field.name)
        if name in document:
            values[field.name] = _value_of(field.type, document[name], where)
        elif field.tag is None:
            raise DecodeError(f"{where} is missing", 0)
        else:
            values[field.name] = field.default
    return values


def _value_of(kind: FieldType, value: Any, where: str) -> Any:
    if isinstance(kind, NullableStruct):
        return None if value is None else values_of(kind.struct, value)
    if isinstance(kind, Struct):
        return values_of(kind, value)
    if isinstance(kind, Array):
        if value is None and kind.nullable:
            return None
        if not isinstance(value, list):
            raise DecodeError(f"{where} is not a list", 0)
        return [_value_of(kind.element, element, where) for element in value]
    if value is None and kind in (Length.NULLABLE_STRING, Length.NULLABLE_BYTES):
        return None
    try:
        return _plain_value_of(kind, value)
    except (TypeError, ValueError, struct.error):
        raise DecodeError(f"{where} has {value!r:.40}, which is not of type {kind.name.lower()}", 0) from None


def _plain_value_of(kind: Primitive | Length, value: Any) -> Any:
    """Raises TypeError, ValueError or struct.error for a value of another kind."""
    if kind is Primitive.UUID:
        return uuid_bytes(value)
    if kind in (Length.BYTES, Length.NULLABLE_BYTES):
        return b64decode(value, validate=True)
    if kind is Primitive.FLOAT64:
        return float(value)
    wanted = bool if kind is Primitive.BOOL else str if isinstance(kind, Length) else int
    if type(value) is not wanted:
        raise TypeError
    if isinstance(kind, Primitive):
        struct.pack(">" + kind.code, value)  # whether it is within the type's range
    return value

"""Keys and values in Avro with Confluent's header: a zero, the id of a schema in four bytes, then the value.

Source: Confluent's wire format, as `io.confluent.kafka.serializers.AbstractKafkaSchemaSerDe` writes it.
"""

from __future__ import annotations

import io
import json
import math
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_extra

_HEADER_BYTES = 5
_MAGIC = 0


class NoSuchSchema(Exception):
    """Why there is no Avro schema for an id; other records may have theirs."""


SchemaOfId = Callable[[int], str]
"""The text of the Avro schema with an id. Raises NoSuchSchema; and TieredctlError where no schema can be had."""


class AvroValues:
    """Decodes keys and values; without schemas, it takes the header alone apart."""

    def __init__(self, schema_of: SchemaOfId | None = None) -> None:
        """Raises TieredctlError `missing-extra` where schemas are given and fastavro is not installed."""
        self._schema_of = schema_of
        self._read = None if schema_of is None else _reader()
        self._schemas: dict[int, _Schema | str] = {}
        self.undecoded = 0
        """How many keys and values could not be decoded."""

    def document(self, data: bytes) -> dict[str, Any]:
        """`schemaId`, and `value` where it can be decoded, otherwise the bytes after the header as base64, `data`, with
        the `error` if there should have been a value. Numbers are as they are stored, whatever their logical type;
        bytes are base64."""
        if len(data) < _HEADER_BYTES or data[0] != _MAGIC:
            self.undecoded += 1
            return {"schemaId": None, "error": "it does not begin with a schema id", "data": _base64(data)}
        number, body = int.from_bytes(data[1:_HEADER_BYTES], "big"), data[_HEADER_BYTES:]
        if self._read is None:
            return {"schemaId": number, "data": _base64(body)}
        schema = self._schema(number)
        reason = schema
        if isinstance(schema, _Schema):
            stream = io.BytesIO(body)
            try:
                value = _as_json(self._read(stream, schema.parsed, is_recursive=schema.is_recursive))
            except RecursionError:
                reason = "it is nested too deeply"
            except Exception:  # noqa: BLE001 fastavro raises whatever bytes that are not of the schema lead to
                reason = f"it is not of schema {number}"
            else:
                if stream.tell() == len(body):
                    return {"schemaId": number, "value": value}
                reason = f"it is longer than a value of schema {number}"
        self.undecoded += 1
        return {"schemaId": number, "error": str(reason), "data": _base64(body)}

    def _schema(self, number: int) -> _Schema | str:
        """The schema, or why there is none."""
        if number not in self._schemas:
            assert self._schema_of is not None
            try:
                self._schemas[number] = _Schema(self._schema_of(number))
            except (NoSuchSchema, _NotAvro) as error:
                self._schemas[number] = f"schema {number} {error}"
        return self._schemas[number]


class SchemaOfFile:
    """The schema in a file, whichever id a value has."""

    def __init__(self, name: str, text: str) -> None:
        """Raises TieredctlError `usage` where it is not an Avro schema, and `missing-extra` as `AvroValues` does."""
        self._text = text
        _reader()
        try:
            _Schema(text)
        except _NotAvro as error:
            raise TieredctlError(ErrorCode.USAGE, f"{name} {error}.", hint="Give an Avro schema in JSON.") from None

    def __call__(self, _: int) -> str:
        return self._text


class _NotAvro(Exception):
    pass


class _Schema:
    """A schema that values can be read with safely."""

    def __init__(self, text: str) -> None:
        """Raises _NotAvro for what is none, and where a few bytes could claim to be any number of items."""
        from fastavro import parse_schema

        try:
            plain = _without_logical_types(json.loads(text))
            self.parsed = parse_schema(plain)
        except Exception:  # noqa: BLE001 fastavro raises whatever JSON that is not a schema leads to
            raise _NotAvro("is not an Avro schema that stands alone") from None
        self.is_recursive = False
        self._known: dict[str, int] = {}
        self._open: set[str] = set()
        """The records whose fields are being looked at."""
        self._least_bytes(self.parsed)

    def _least_bytes(self, schema: Any) -> int:
        """The least bytes of an encoded value."""
        if isinstance(schema, list):
            return 1 + min(map(self._least_bytes, schema), default=0)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._least_bytes(kind)
        match kind:
            case "null":
                return 0
            case "array" if not self._least_bytes(schema["items"]):
                raise _NotAvro("has an array whose items take no bytes, which no length bounds")
            case "map":
                self._least_bytes(schema["values"])
            case "fixed":
                self._known[schema["name"]] = int(schema["size"])
                return int(schema["size"])
            case "enum":
                self._known[schema["name"]] = 1
            case "record" | "error":
                # It can hold itself only in a union, an array or a map, which take a byte at least.
                self._known[schema["name"]] = 1
                self._open.add(schema["name"])
                size = sum(self._least_bytes(field["type"]) for field in schema["fields"])
                self._open.discard(schema["name"])
                self._known[schema["name"]] = size
                return size
            case name if name in self._known:
                self.is_recursive = self.is_recursive or name in self._open
                return self._known[name]
        return 1


def _without_logical_types(schema: Any) -> Any:
    """Values are shown as they are stored: what a logical type makes of them may not exist."""
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    if isinstance(schema, dict):
        return {name: _without_logical_types(one) for name, one in schema.items() if name != "logicalType"}
    return schema


def _reader() -> Callable[..., Any]:
    try:
        from fastavro import schemaless_reader
        from fastavro._read_py import schemaless_reader as checked_reader
    except ImportError:
        raise missing_extra("Decoding Avro needs fastavro.", "avro") from None

    def read(stream: io.BytesIO, schema: Any, *, is_recursive: bool) -> Any:
        # Compiled code does not notice when the stack ends, to which a recursive schema leads with a byte a level.
        return (checked_reader if is_recursive else schemaless_reader)(stream, schema, None)

    return read


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    return value


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")

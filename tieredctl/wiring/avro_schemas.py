"""Opens what has the schemas of keys and values in Avro."""

from __future__ import annotations

import os
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.schema_registry import USER_INFO, SchemaRegistry
from tieredctl.ops.file_reading import demand_size, regular_size
from tieredctl.records.avro_values import AvroValues, NoSuchSchema, SchemaOfFile

_LARGEST_BYTES = 16 << 20


def avro_values(file: Path | None, registry: str | None) -> AvroValues:
    """What decodes by the schema of a file, by those of a registry, or without any takes headers apart. Raises
    TieredctlError `usage` for what is not a schema or not a registry's URL, and `missing-extra`; its documents raise
    as `SchemaRegistry.avro_schema` does."""
    if file is not None:
        demand_size(file, regular_size(file), _LARGEST_BYTES, "Give an Avro schema in JSON.")
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            message, hint = f"{file} is not an Avro schema.", "Give an Avro schema in JSON."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint) from None
        return AvroValues(SchemaOfFile(str(file), text))
    if registry is None:
        return AvroValues()
    asked = _registry(registry)

    def schema_of(number: int) -> str:
        schema = asked.avro_schema(number)
        if schema is None:
            raise NoSuchSchema("is not an Avro schema in the registry")
        return schema

    return AvroValues(schema_of)


def registry_url(registry: str) -> str:
    """The URL that is asked. Raises TieredctlError as `SchemaRegistry` does."""
    return _registry(registry).url


def _registry(url: str) -> SchemaRegistry:
    return SchemaRegistry(url, os.environ.get(USER_INFO))

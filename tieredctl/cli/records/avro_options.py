"""Where the schemas of keys and values in Avro come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.records.shown_bytes import BytesAs, ShownBytes
from tieredctl.errors import ErrorCode, TieredctlError


@dataclass(frozen=True, slots=True)
class AvroOptions(OptionGroup):
    """How keys and values are shown, and decoded where they are Avro."""

    key: Annotated[BytesAs | None, typer.Option(help="How keys are shown; text in tables, otherwise base64.")] = None
    value: Annotated[BytesAs | None, typer.Option(help="How values are shown; likewise.")] = None
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The Avro schema, for --key avro or --value avro.")
    ] = None
    schema_registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The registry that has the Avro schemas.",
            envvar="TIEREDCTL_SCHEMA_REGISTRY",
        ),
    ] = None

    def shown(self) -> ShownBytes:
        """Raises TieredctlError `usage` for what does not go together and for what is not a schema, and
        `missing-extra` where fastavro is needed and not installed."""
        given = (self.key, self.value)
        if BytesAs.AVRO not in given:
            if self.schema is not None:
                raise TieredctlError(ErrorCode.USAGE, "--schema is for --key avro or --value avro.")
            return ShownBytes(*given)
        if self.schema is not None and self.schema_registry is not None:
            raise TieredctlError(ErrorCode.USAGE, "--schema and --schema-registry cannot be combined.")
        if self.schema is not None and given == (BytesAs.AVRO, BytesAs.AVRO):
            hint = "Keys and values have schemas of their own: give --schema-registry."
            raise TieredctlError(ErrorCode.USAGE, "--schema is for keys or for values, not for both.", hint=hint)
        from tieredctl.wiring.avro_schemas import avro_values

        return ShownBytes(*given, avro_values(self.schema, self.schema_registry))

    def identity(self) -> str | None:
        """Which schemas these are; None where nothing is decoded."""
        if self.schema is not None:
            return f"sha256:{hashlib.sha256(self.schema.read_bytes()).hexdigest()}"
        if self.schema_registry is None or BytesAs.AVRO not in (self.key, self.value):
            return None
        from tieredctl.wiring.avro_schemas import registry_url

        return registry_url(self.schema_registry)

"""Schemas, each declared once as Arrow's and turned into Spark's."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from tieredctl.errors import ErrorCode, TieredctlError


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of a DataFrame. Times are instants (TimestampType)."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def as_spark_reads(schema: pa.Schema) -> pa.Schema:
    """The same columns in exactly the types that Spark requires in a data source's batches."""
    return to_arrow_schema(spark_schema(schema), timezone="UTC")


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns that are asked for."""

    schema: pa.Schema
    """As Spark requires them."""

    @property
    def names(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    def batches(self, table: pa.Table) -> list[pa.RecordBatch]:
        """These columns of a table that has more."""
        found: list[pa.RecordBatch] = table.select(self.names).cast(self.schema).to_batches()
        return found


def projection(source: str, asked: StructType, full: pa.Schema) -> Projection:
    """Some of a source's columns, as a schema that was given to `spark.read.schema` names them.

    Raises TieredctlError `usage` for a column that the source does not have, or has with another type.
    """
    types = {field.name: field.dataType for field in spark_schema(full)}
    for field in asked:
        if field.name not in types:
            message = f"{source} has no column {field.name!r}; its columns are {', '.join(types)}."
            raise TieredctlError(ErrorCode.USAGE, message)
        own, other = types[field.name].simpleString(), field.dataType.simpleString()
        if own != other:
            raise TieredctlError(ErrorCode.USAGE, f"The column {field.name} of {source} is {own}, not {other}.")
    return Projection(to_arrow_schema(asked, timezone="UTC"))

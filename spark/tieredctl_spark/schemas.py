"""Schemas, each declared once as Arrow's and turned into Spark's.

PySpark's own conversion (`pyspark.sql.pandas.types`) is private: its signature changes between releases.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as spark

from tieredctl.errors import ErrorCode, TieredctlError

_SCALARS: dict[pa.DataType, spark.DataType] = {
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
}


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The columns of a DataFrame. Times are instants (TimestampType)."""
    return spark.StructType(
        [spark.StructField(field.name, _spark_type(field.type), field.nullable) for field in schema]
    )


def as_spark_reads(schema: pa.Schema) -> pa.Schema:
    """The same columns in exactly the types that Spark requires in a data source's batches."""
    return pa.schema([pa.field(field.name, _as_spark_reads(field.type), field.nullable) for field in schema])


def _spark_type(arrow: pa.DataType) -> spark.DataType:
    if pa.types.is_timestamp(arrow):
        return spark.TimestampType()
    if pa.types.is_list(arrow):
        return spark.ArrayType(_spark_type(arrow.value_type))
    if pa.types.is_struct(arrow):
        return spark_schema(pa.schema(arrow.fields))
    return _SCALARS[_values(arrow)]


def _as_spark_reads(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", "UTC")
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("element", _as_spark_reads(arrow.value_type)))
    if pa.types.is_struct(arrow):
        return pa.struct(list(as_spark_reads(pa.schema(arrow.fields))))
    return _values(arrow)


def _values(arrow: pa.DataType) -> pa.DataType:
    """What a dictionary's values are; Spark has no dictionaries."""
    return arrow.value_type if pa.types.is_dictionary(arrow) else arrow


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


def projection(source: str, asked: spark.StructType, full: pa.Schema) -> Projection:
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
    return Projection(as_spark_reads(pa.schema([full.field(name) for name in asked.names])))

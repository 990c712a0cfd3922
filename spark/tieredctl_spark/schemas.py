"""Schemas, each declared once as Arrow's and turned into Spark's."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of a DataFrame. Times are instants (TimestampType)."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def as_spark_reads(schema: pa.Schema) -> pa.Schema:
    """The same columns in exactly the types that Spark requires in a data source's batches."""
    return to_arrow_schema(spark_schema(schema), timezone="UTC")

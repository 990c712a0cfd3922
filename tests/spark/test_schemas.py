"""Schemas as Spark has them, beside what PySpark makes of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from tieredctl_spark.arrow.batch_table import BATCH_TABLE_SCHEMA
from tieredctl_spark.arrow.event_table import EVENT_TABLE_SCHEMA, FINDING_TABLE_SCHEMA
from tieredctl_spark.arrow.object_table import OBJECT_TABLE_SCHEMA
from tieredctl_spark.arrow.segment_table import SEGMENT_TABLE_SCHEMA
from tieredctl_spark.arrow.state_columns import STATE_SCHEMA
from tieredctl_spark.schemas import as_spark_reads, spark_schema

from tieredctl.ops.metadata.table import RECORD_TABLE_SCHEMA
from tieredctl.ops.remote.listing import LISTING_SCHEMA
from tieredctl.ops.verification.tasks import TASK_SCHEMA

pytestmark = pytest.mark.spark


def test_types_are_those_that_pyspark_makes_of_the_same_schema() -> None:
    for schema in (
        RECORD_TABLE_SCHEMA,
        STATE_SCHEMA,
        BATCH_TABLE_SCHEMA,
        LISTING_SCHEMA,
        OBJECT_TABLE_SCHEMA,
        TASK_SCHEMA,
        EVENT_TABLE_SCHEMA,
        FINDING_TABLE_SCHEMA,
        SEGMENT_TABLE_SCHEMA,
        pa.schema({"list": pa.list_(pa.struct({"inner": pa.list_(pa.float64())}))}),
    ):
        of_pyspark = from_arrow_schema(schema, prefer_timestamp_ntz=False)

        assert spark_schema(schema) == of_pyspark, schema
        assert as_spark_reads(schema) == to_arrow_schema(of_pyspark, timezone="UTC"), schema

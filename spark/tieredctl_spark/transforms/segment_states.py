"""The state of every segment after all events."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.ops.orphans.state_columns import EVENT_SCHEMA, STATE_SCHEMA, replayed_states
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.transforms.buckets import bucket_of


def segment_states(events: DataFrame, buckets: int) -> DataFrame:
    """A row by STATE_SCHEMA for each segment of each partition that events by EVENT_SCHEMA name, in whatever order they
    come. All events of a partition are replayed in one task; an id that two partitions claim has a row for each."""
    keyed = events.select(*EVENT_SCHEMA.names, bucket_of(buckets, fn.col("topicId"), fn.col("partition")))
    return keyed.groupBy("bucket").applyInArrow(_replayed, spark_schema(STATE_SCHEMA))


def _replayed(events: pa.Table) -> pa.Table:
    return replayed_states(events.select(EVENT_SCHEMA.names))

"""What records of `__remote_log_metadata` promise, and whether segments make logs, partition by partition:

records = spark.read.format("remote_log_metadata").option("log-dir", "/data/kafka").load()
missing = promised_objects(records, layout, 200).join(objects, "key", "left_anti")
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.ports.layout import Layout
from tieredctl_spark.arrow import recorded_partitions
from tieredctl_spark.arrow.recorded_partitions import PROMISE_SCHEMA, RECORD_SCHEMA
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_table
from tieredctl_spark.worker_functions import mapped_groups


def promised_objects(records: DataFrame, layout: Layout, buckets: int) -> DataFrame:
    """A row by PROMISE_SCHEMA for each object that has to be in the store, of rows of `remote_log_metadata`. A bucket
    of partitions is in a worker's memory as a whole."""

    def promised(rows: pa.Table) -> pa.Table:
        return recorded_partitions.promised_objects(rows, layout)

    return _by_partition(records, buckets, promised, PROMISE_SCHEMA)


def lineage_findings(records: DataFrame, buckets: int) -> DataFrame:
    """Gaps and overlaps of segments, a row for each finding by FINDING_TYPE, of rows of `remote_log_metadata`. What
    cannot be decoded is not among them, but in `records`."""

    def found(rows: pa.Table) -> pa.Table:
        return finding_table(recorded_partitions.lineage_findings(rows))

    return _by_partition(records, buckets, found, pa.schema(list(FINDING_TYPE)))


def _by_partition(
    records: DataFrame, buckets: int, told: Callable[[pa.Table], pa.Table], schema: pa.Schema
) -> DataFrame:
    events = records.where(fn.col("topicId").isNotNull() & fn.col("value").isNotNull())
    bucket = fn.pmod(fn.xxhash64("topicId", "partition"), fn.lit(buckets)).alias("bucket")
    keyed = events.select(*RECORD_SCHEMA.names, bucket).groupBy("bucket")

    def of_bucket(rows: pa.Table) -> pa.Table:
        return told(rows.select(RECORD_SCHEMA.names).cast(RECORD_SCHEMA))

    return mapped_groups(keyed, of_bucket, schema)

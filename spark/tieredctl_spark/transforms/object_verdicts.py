"""Which segment owns each object."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.ops.orphans.judged_bucket import OBJECT_SCHEMA, VERDICT_SCHEMA, JudgedBy, judge_bucket
from tieredctl.ops.orphans.state_columns import STATE_SCHEMA
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.transforms.buckets import bucket_of

_KNOWN_AS = "knownTopic"


def object_verdicts(segments: DataFrame, objects: DataFrame, by: JudgedBy, buckets: int) -> DataFrame:
    """Verdicts by VERDICT_SCHEMA on objects by OBJECT_SCHEMA that have besides the `segmentId` of their keys, null for
    none; from all segments by STATE_SCHEMA."""
    segment_id = fn.col("segmentId")
    keyed_segments = segments.select(*STATE_SCHEMA.names, bucket_of(buckets, segment_id))
    key = fn.coalesce(segment_id, fn.base64("key"))
    keyed_objects = objects.select(*OBJECT_SCHEMA.names, bucket_of(buckets, key))
    together = keyed_segments.groupBy("bucket").cogroup(keyed_objects.groupBy("bucket"))
    return together.applyInArrow(_judging(by), spark_schema(VERDICT_SCHEMA))


def with_known_partitions(objects: DataFrame, events: DataFrame) -> DataFrame:
    """Objects whose partition metadata knows, by its name there. To be asked for where metadata may lie elsewhere."""
    place = ["topicId", "partition"]
    known = events.groupBy(*place).agg(fn.min("topic").alias(_KNOWN_AS))
    return objects.drop(_KNOWN_AS).join(known, place, "left")


def _judging(by: JudgedBy) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def judged(segments: pa.Table, objects: pa.Table) -> pa.Table:
        batches = judge_bucket(segments.select(STATE_SCHEMA.names), objects.select(OBJECT_SCHEMA.names), by)
        return pa.Table.from_batches(batches, VERDICT_SCHEMA)

    return judged

"""Which segment owns each object."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.ops.orphans.judged_bucket import OBJECT_SCHEMA, VERDICT_SCHEMA, JudgedBy, judge_bucket
from tieredctl.ops.orphans.state_columns import STATE_SCHEMA
from tieredctl_spark.packed import Packed, packed_rows, together
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.transforms.buckets import numbers_of_segments

_KNOWN_AS = "knownTopic"


def object_verdicts(segments: Packed, objects: Packed, by: JudgedBy, buckets: int) -> DataFrame:
    """Verdicts by VERDICT_SCHEMA on objects by OBJECT_SCHEMA that have besides the `segmentId` of their keys, null for
    none; from all segments by STATE_SCHEMA."""

    def judged(some_segments: pa.Table, some_objects: pa.Table) -> pa.Table:
        states = together(some_segments, STATE_SCHEMA)
        batches = judge_bucket(states, together(some_objects, OBJECT_SCHEMA), by)
        return pa.Table.from_batches(batches, VERDICT_SCHEMA)

    known_segments = segments.by_bucket(buckets, numbers_of_segments, STATE_SCHEMA)
    their_objects = objects.by_bucket(buckets, numbers_of_segments, OBJECT_SCHEMA)
    return known_segments.cogroup(their_objects).applyInArrow(judged, spark_schema(VERDICT_SCHEMA))


def with_known_partitions(objects: Packed, events: Packed) -> Packed:
    """Objects whose partition metadata knows, by its name there. To be asked for where metadata may lie elsewhere."""
    place = ["topicId", "partition"]
    known = events.rows().groupBy(*place).agg(fn.min("topic").alias(_KNOWN_AS))
    return packed_rows(objects.rows().drop(_KNOWN_AS).join(known, place, "left"), objects.schema)

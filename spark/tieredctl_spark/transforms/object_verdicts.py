"""Which segment owns each object."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl_spark.arrow.judged_bucket import OBJECT_SCHEMA, VERDICT_SCHEMA, JudgedBy, judge_bucket
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA, STATE_SCHEMA, replayed_states
from tieredctl_spark.packed import Packed, packed_groups, packed_rows, together
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.transforms.buckets import numbers_of_partitions, numbers_of_segments

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


def segment_states(events: Packed, buckets: int) -> Packed:
    """A row by STATE_SCHEMA for each segment of each partition that events by EVENT_SCHEMA name, in whatever order they
    come. All events of a partition are replayed in one task; an id that two partitions claim has a row for each."""

    def replayed(group: pa.Table) -> pa.Table:
        return replayed_states(together(group, EVENT_SCHEMA))

    return packed_groups(events.by_bucket(buckets, numbers_of_partitions, EVENT_SCHEMA), replayed, STATE_SCHEMA)

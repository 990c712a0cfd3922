"""Which segment owns each object that is not plainly owned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.ids import TopicIdPartition
from tieredctl_spark.arrow.judged_bucket import OBJECT_SCHEMA, judge_bucket
from tieredctl_spark.arrow.state_columns import PARTITION_FIELDS, STATE_SCHEMA
from tieredctl_spark.arrow.verdict_columns import VERDICT_SCHEMA, JudgedBy
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_frame import SegmentFrame
from tieredctl_spark.worker_functions import mapped_pairs

_KNOWN_AS = "knownTopic"
_BUCKET = "bucket"
_OBJECTS_IN_BUCKET = 250_000
"""About: they are in the memory of a Python worker as a whole."""


def object_verdicts(segments: SegmentFrame, objects: DataFrame, by: JudgedBy, count: int) -> DataFrame:
    """Verdicts by VERDICT_SCHEMA on so many objects by OBJECT_SCHEMA that have besides the `segmentId` of their keys,
    null for none; from all segments."""
    buckets = -(-count // _OBJECTS_IN_BUCKET) or 1

    def judged(some_segments: pa.Table, some_objects: pa.Table) -> pa.Table:
        segments, listed = some_segments.select(STATE_SCHEMA.names), some_objects.select(OBJECT_SCHEMA.names)
        return pa.Table.from_batches(judge_bucket(segments, listed.cast(OBJECT_SCHEMA), by), VERDICT_SCHEMA)

    # Only segments that are named are moved.
    named = segments.named(objects.select("segmentId").distinct(), count)
    their_segments = named.withColumn(_BUCKET, _bucket(fn.col("segmentId"), buckets)).groupBy(_BUCKET)
    # What names no segment is spread by its key.
    spread = fn.coalesce("segmentId", fn.hex("key"))
    their_objects = objects.withColumn(_BUCKET, _bucket(spread, buckets)).groupBy(_BUCKET)
    return mapped_pairs(their_segments.cogroup(their_objects), judged, VERDICT_SCHEMA)


def with_known_partitions(objects: DataFrame, known: Iterable[TopicIdPartition]) -> DataFrame:
    """Objects with `knownTopic`, where their partition is one of these: to be asked for where metadata may lie
    elsewhere."""
    names: dict[tuple[str, int], str] = {}
    for one in known:
        place = one.topic_id, one.partition
        names[place] = min(one.topic, names.get(place, one.topic))
    rows = partition_frame(objects, (TopicIdPartition(place[0], name, place[1]) for place, name in names.items()))
    return objects.join(rows.withColumnRenamed("topic", _KNOWN_AS), ["topicId", "partition"], "left")


def without_known_partitions(objects: DataFrame) -> DataFrame:
    """The same where nobody asks for them."""
    return objects.withColumn(_KNOWN_AS, fn.lit(None).cast("string"))


def partition_frame(
    beside: DataFrame, partitions: Iterable[TopicIdPartition], more: Mapping[str, pa.Array] | None = None
) -> DataFrame:
    """Partitions as rows, with other columns, in the session of a DataFrame."""
    rows = [(one.topic, one.topic_id, one.partition) for one in partitions]
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(PARTITION_FIELDS.items())
    }
    table = pa.table(columns | dict(more or {}))
    return beside.sparkSession.createDataFrame(table, spark_schema(table.schema))


def _bucket(of: Column, buckets: int) -> Column:
    return fn.pmod(fn.xxhash64(of), fn.lit(buckets))

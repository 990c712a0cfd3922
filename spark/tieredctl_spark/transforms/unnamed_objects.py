"""Whether copies of their partitions prove that the records of objects are elsewhere that metadata never named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.formats.metadata_schemas import PARTITION_DELETE
from tieredctl_spark.arrow.judged_bucket import VERDICT_SCHEMA, JudgedBy
from tieredctl_spark.arrow.state_columns import COPIED_FIELDS, STATE_SCHEMA
from tieredctl_spark.arrow.unnamed_objects import UNNAMED_SCHEMA, judge_unnamed
from tieredctl_spark.packed import Packed
from tieredctl_spark.schemas import spark_schema

_PARTITION = ["topic", "topicId", "partition"]
_PARTITION_SCHEMA = pa.schema([STATE_SCHEMA.field(name) for name in _PARTITION])
_COPIED_SCHEMA = pa.schema([*_PARTITION_SCHEMA, *COPIED_FIELDS.items()])


def unnamed_verdicts(objects: DataFrame, segments: Packed, events: Packed, by: JudgedBy) -> DataFrame:
    """Verdicts by VERDICT_SCHEMA on objects that have them by it and are not covered, from all segments by STATE_SCHEMA
    and all events by EVENT_SCHEMA."""
    copied = segments.through(_copied, _COPIED_SCHEMA).rows().distinct()
    removed = events.through(_removed, _PARTITION_SCHEMA).rows().distinct().withColumn("isRemoved", fn.lit(True))
    known = objects.join(copied, _PARTITION, "left").join(removed, _PARTITION, "left").select(UNNAMED_SCHEMA.names)

    def judged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from judge_unnamed(batch, by).to_batches()

    return known.mapInArrow(judged, spark_schema(VERDICT_SCHEMA))


def _copied(segments: pa.Table) -> pa.Table:
    return segments.select(_COPIED_SCHEMA.names).group_by(_COPIED_SCHEMA.names).aggregate([])


def _removed(events: pa.Table) -> pa.Table:
    partitions = events.filter(pc.equal(events.column("apiKey"), PARTITION_DELETE)).select(_PARTITION)
    return partitions.group_by(_PARTITION).aggregate([])

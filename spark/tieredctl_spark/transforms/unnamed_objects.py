"""Whether copies of their partitions prove that the records of objects are elsewhere that metadata never named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.ids import TopicIdPartition
from tieredctl_spark.arrow.state_columns import COPIED_FIELDS, PARTITION_FIELDS
from tieredctl_spark.arrow.unnamed_objects import UNNAMED_SCHEMA, judge_unnamed
from tieredctl_spark.arrow.verdict_columns import VERDICT_SCHEMA, JudgedBy
from tieredctl_spark.segment_frame import SegmentFrame
from tieredctl_spark.transforms.object_verdicts import partition_frame
from tieredctl_spark.worker_functions import mapped

_PARTITION = list(PARTITION_FIELDS)


def unnamed_verdicts(
    objects: DataFrame, segments: SegmentFrame, removed: Iterable[TopicIdPartition], by: JudgedBy
) -> DataFrame:
    """Verdicts by VERDICT_SCHEMA on objects that have them by it and are not covered, from all segments and the
    partitions of whose removal an event tells."""
    copied = segments.partition_rows(*_PARTITION, *COPIED_FIELDS)
    gone = partition_frame(objects, removed).withColumn("isRemoved", fn.lit(True))
    known = objects.join(copied, _PARTITION, "left").join(gone, _PARTITION, "left").select(*UNNAMED_SCHEMA.names)

    def judged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from judge_unnamed(batch, by).to_batches()

    return mapped(known, judged, VERDICT_SCHEMA)

"""What was verified, how deep, and when: by a comparison with the listing, and by the readings of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification
from tieredctl_spark.coverage_engine import known_sum_of
from tieredctl_spark.segment_rows import Result
from tieredctl_spark.tables.kinds import COVERAGE

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
SEGMENT_COLUMNS = ("topic", "topicId", "segmentId", "segmentSizeInBytes", "state")
READING_COLUMNS = ("segmentId", "level", "result", "checkedAt", "store")


def compared(verified: Verification, now_ms: int) -> pa.Table:
    """By `COVERAGE.columns`, which segments were compared with the store's listing now."""
    metadata = verified.metadata
    if metadata is None:
        return COVERAGE.columns.empty_table()
    finished = metadata.in_states([_FINISHED])
    owners = metadata.rows.partitions[finished].astype(np.int64)
    sizes = metadata.size_by(owners, finished, len(metadata.partitions))
    counts: dict[tuple[str, str], int] = {}
    totals: dict[tuple[str, str], int | None] = {}
    for number in owners.tolist():
        named = metadata.partitions[number].topic, metadata.partitions[number].topic_id
        counts[named] = counts.get(named, 0) + 1
    for number in sorted(set(owners.tolist())):
        named, size = (metadata.partitions[number].topic, metadata.partitions[number].topic_id), sizes[number].known
        before = totals.get(named, 0)
        totals[named] = None if None in (before, size) else before + size
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    same = {"level": Level.LISTING.value, "verified": now, "complete": verified.complete}
    rows = [
        {"topic": topic, "topicId": topic_id, "segments": count, "bytes": totals[topic, topic_id], **same}
        for (topic, topic_id), count in sorted(counts.items())
    ]
    return pa.Table.from_pylist(rows, COVERAGE.columns)


def read(segments: DataFrame, readings: DataFrame, store_url: str) -> pa.Table:
    """By `COVERAGE.columns`, of these SEGMENT_COLUMNS which were read in a store, by READING_COLUMNS of the ledger:
    `verified` is the moment since which each of them was; `complete` is whether each try later than that had an answer,
    too."""
    was_read = fn.col("result").isin(Result.SOUND.value, Result.FOUND.value)
    finished = segments.where(fn.col("state") == _FINISHED.name)
    # Whatever else the ledger knows is left out before anything is put together.
    tried = (
        readings.where(fn.col("store") == store_url)
        .join(finished, "segmentId")
        .groupBy("topic", "topicId", "segmentId", "level")
    )
    each = tried.agg(
        fn.max(fn.when(was_read, fn.col("checkedAt"))).alias("read"),
        fn.max(fn.when(~was_read, fn.col("checkedAt"))).alias("unanswered"),
        fn.first("segmentSizeInBytes").cast("long").alias("size"),
    )
    is_read = fn.col("read").isNotNull()
    by_topic = each.groupBy("topic", "topicId", "level").agg(
        fn.count("read").alias("segments"),
        known_sum_of(fn.when(is_read, fn.col("size")).otherwise(0)).alias("bytes"),
        fn.min("read").alias("verified"),
        fn.every(is_read & fn.coalesce(fn.col("unanswered") <= fn.col("read"), fn.lit(True))).alias("complete"),
    )
    names = COVERAGE.columns.names
    return by_topic.select(*names).orderBy("level", "topic", "topicId").toArrow().cast(COVERAGE.columns)

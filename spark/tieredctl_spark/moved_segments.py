"""Which segments of what looks orphaned went on since the metadata was read: their objects are in progress."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.completeness import lost_between
from tieredctl.rlmm.segment_rows import NO_STATE
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.kept_frames import Keep
from tieredctl_spark.metadata_facts import MetadataFacts
from tieredctl_spark.metadata_pass import read_segments

_GO_ON = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)


class MovedSegments(NamedTuple):
    """What a second reading of the metadata, after the first, tells of some segments."""

    ids: DataFrame | None
    """Those that are in another state by now, as `segmentId`; None for none."""
    lost: list[Finding]
    """What the second reading lacks: then only what it has in a later state is known to have moved."""


def moved_segments(orphans: DataFrame, metadata: MetadataPlace, first: MetadataFacts, keep: Keep) -> MovedSegments:
    """The segments of orphans (rows by VERDICT_SCHEMA) that moved. The metadata is read again where some may go on.
    Raises TieredctlError as `read_segments` does."""
    then = orphans.where(fn.col("state").isin([one.name for one in _GO_ON])).select("segmentId", "state").distinct()
    if not (count := then.count()):
        return MovedSegments(None, [])

    def again(frame: DataFrame, name: str) -> DataFrame:
        return keep(frame, f"{name}-again")

    with metadata.open() as stream:
        segments, now = read_segments(orphans.sparkSession, metadata, stream, again)
    lost = lost_between(first, now)
    theirs = segments.named(then.select("segmentId"), count).groupBy("segmentId")
    known = fn.when(fn.col("state") != NO_STATE, fn.col("state"))
    claims = theirs.agg(fn.count("*").alias("claims"), fn.max(known).alias("now"))
    numbers = [fn.when(fn.col("state") == one.name, fn.lit(int(one))) for one in _GO_ON]
    before = fn.coalesce(*numbers)
    stayed = fn.coalesce((fn.col("claims") == 1) & (fn.col("now") == before), fn.lit(False))
    has_moved = fn.col("now") > before if lost else ~stayed
    moved = then.join(claims, "segmentId", "left").where(has_moved)
    return MovedSegments(moved.select("segmentId"), lost)

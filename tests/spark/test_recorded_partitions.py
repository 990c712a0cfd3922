"""Promised objects and lineage on Spark, of the records that the data source reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.transforms.recorded_partitions import lineage_findings, promised_objects

from tests.spark.damage import REMOTE
from tieredctl.layouts.registry import layout_named
from tieredctl.model.finding_codes import FindingCode

pytestmark = pytest.mark.spark

LAYOUT = layout_named("local")
BUCKETS = 3


def test_promised_objects_are_there_and_a_lost_segment_leaves_a_gap(spark: SparkSession, kafka_4: Path) -> None:
    records = spark.read.format("remote_log_metadata").load(**{"log-dir": str(kafka_4 / "data")})
    store = kafka_4 / REMOTE

    promised = promised_objects(records, LAYOUT, BUCKETS).toArrow().to_pylist()
    lineage = lineage_findings(records, BUCKETS).toArrow().to_pylist()

    stored = {path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()}
    assert len(promised) == len({one["key"] for one in promised}) > 500
    assert {one["key"] for one in promised} <= stored
    # One whose neighbours are there.
    (lost, *_) = sorted(
        {one["segmentId"] for one in promised if (one["topic"], one["partition"]) == ("orders7", 0)},
        key=lambda one: next(other["key"] for other in promised if other["segmentId"] == one),
    )[1:]
    found = (
        lineage_findings(records.where(f"segmentId is null or segmentId != '{lost}'"), BUCKETS).toArrow().to_pylist()
    )
    assert {one["code"] for one in found} >= {FindingCode.OFFSET_GAP.value}
    assert len(found) == len(lineage) + 1

"""Runs that have read nothing yet, and what there is to be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.captured_tasks import captured_tasks
from tests.spark.damage import REMOTE
from tests.spark.ledger.recorded_runs import Runs
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.storage.file import FileStore


@pytest.fixture
def runs(spark: SparkSession, kafka_4: Path, tmp_path: Path) -> Runs:
    return Runs(spark, tmp_path, FileStore(str(kafka_4 / REMOTE)))


@pytest.fixture
def tasks(kafka_4: Path) -> list[SegmentTask]:
    return captured_tasks(kafka_4, Level.HEADERS)

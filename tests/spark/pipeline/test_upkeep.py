"""Events of days past their retention go; those of a past day with many files come into few, unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.pipeline.upkeep import kept_events
from tieredctl_spark.tables.due import events_due, first_kept_day
from tieredctl_spark.tables.files import file_rows
from tieredctl_spark.tables.kinds import EVENTS
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.table_store import TablesPlace
from tieredctl_spark.tables.writing import TableWriter

DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS
FIRST_KEPT = first_kept_day(30 * DAY_MS, NOW_MS, NOW_MS)
TODAY, YESTERDAY, LONG_AGO = "2024-10-04", "2024-10-03", "2024-01-01"

pytestmark = pytest.mark.spark


def test_rows_stay_as_they_were_in_fewer_files(spark: SparkSession, tmp_path: Path) -> None:
    store = TablesPlace.given(str(tmp_path), {}).open_writable()
    writer = TableWriter(store, 1, "run0", "cluster", TODAY)

    def written(number: int, day: str) -> DataFile:
        row = {"metadataPartition": 0, "metadataOffset": number, "value": b"event"}
        rows = pa.Table.from_pylist([row], EVENTS.columns)
        return replace(writer, run_id=f"run{number}").write(EVENTS, rows, day)

    scattered = [written(number, YESTERDAY) for number in range(1, 6)]
    today, expired = written(6, TODAY), written(0, LONG_AGO)
    files = [expired, *scattered, today]

    kept = kept_events(spark, files, events_due(files, FIRST_KEPT, NOW_MS), replace(writer, version=2))

    assert [(one.day, one.rows, one.is_compacted) for one in kept] == [(TODAY, 1, False), (YESTERDAY, 5, True)]
    assert kept[0] == today
    assert file_rows(store, EVENTS, kept[1:]) == file_rows(store, EVENTS, scattered)
    again = events_due(kept, FIRST_KEPT, NOW_MS)
    assert (again.expired, again.scattered) == ((), {})

"""A run that is killed anywhere changes nothing, and is run again: no row is there twice, and none is missing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tieredctl_spark.tables.table_store import TablesPlace, demand_current

from tests.spark.pipeline.captured_pipeline import CapturedPipeline, contents, cut_copy, grow
from tests.spark.pipeline.killed_runs import killed_run
from tieredctl.errors import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def version(pipeline: CapturedPipeline) -> int:
    return demand_current(TablesPlace.given(str(pipeline.tables), {}).open()).version


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["some writes", "every write"])
def test_tables_are_those_of_one_run_however_often_it_was_killed(
    step: int, kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = cut_copy(kafka_4, tmp_path / "cut", 0.6)
    whole = CapturedPipeline.of_kafka(kafka_4, tmp_path / "whole")
    grown = CapturedPipeline(cut, whole.store, "local", tmp_path / "grown")
    whole.run()
    _, first = grown.run()
    before = contents(grown)
    grow(cut, kafka_4)

    writes = 0
    while killed_run(grown, tmp_path / f"made-{writes}", writes):
        if version(grown) > first["version"]:
            break  # killed after it had made its tables current
        assert contents(grown) == before, writes
        writes += step
    is_done = version(grown) > first["version"]
    code, second = grown.run()

    assert (code, second["news"]) == (ExitCode.CLEAN, not is_done)
    events = grown.rows("events").to_pylist()
    places = Counter((row["metadataPartition"], row["metadataOffset"]) for row in events)
    assert 0 < first["rows"]["events"] < second["rows"]["events"]
    assert set(places.values()) == {1}
    found, expected = contents(grown), contents(whole)
    # What was missing from the cut log was orphaned then, and is resolved now.
    assert all(row["resolved"] for row in grown.rows("findings").to_pylist())
    del found["findings"], expected["findings"]
    assert found == expected
    # And without news, nothing is started or changed.
    files = {path: path.read_bytes() for path in whole.tables.rglob("*.parquet")}
    monkeypatch.setattr("tieredctl_spark.pipeline.run.spark_session", None)
    code, summary = whole.run()
    assert (code, summary["version"], summary["news"]) == (ExitCode.CLEAN, 2, False)
    assert {path: path.read_bytes() for path in whole.tables.rglob("*.parquet")} == files

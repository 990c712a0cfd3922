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


SOME, MANY, NEVER = 9, 12, 1 << 30
"""Writes."""


def version(pipeline: CapturedPipeline) -> int:
    return demand_current(TablesPlace.given(str(pipeline.tables), {}).open()).version


def test_tables_are_those_of_one_run_wherever_others_were_killed(
    kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = cut_copy(kafka_4, tmp_path / "cut", 0.6)
    whole = CapturedPipeline.of_kafka(kafka_4, tmp_path / "whole")
    grown = CapturedPipeline(cut, whole.store, "local", tmp_path / "grown")
    whole.run()
    _, first = grown.run()
    before = contents(grown)
    grow(cut, kafka_4)

    assert killed_run(grown, tmp_path / "killed", SOME)
    assert contents(grown) == before
    assert not killed_run(grown, tmp_path / "moments", NEVER)

    after = contents(grown)
    by_moment = [
        (version(moment), contents(moment) == (before if version(moment) == first["version"] else after))
        for number in range(len(list((tmp_path / "moments").iterdir())))
        for moment in [grown.into(tmp_path / "moments" / str(number))]
    ]
    assert len(by_moment) >= MANY
    assert [seen for seen, _ in by_moment] == sorted(seen for seen, _ in by_moment)
    assert all(is_whole for _, is_whole in by_moment)
    events = grown.rows("events").to_pylist()
    places = Counter((row["metadataPartition"], row["metadataOffset"]) for row in events)
    assert 0 < first["rows"]["events"] < len(events)
    assert set(places.values()) == {1}
    expected = contents(whole)
    # What was missing from the cut log was orphaned then, and is resolved now.
    assert all(row["resolved"] for row in grown.rows("findings").to_pylist())
    del after["findings"], expected["findings"]
    assert after == expected

    # And without news, nothing is started or changed.
    files = {path: path.read_bytes() for path in whole.tables.rglob("*.parquet")}
    monkeypatch.setattr("tieredctl_spark.pipeline.run.spark_session", None)
    code, summary = whole.run()
    assert (code, summary["version"], summary["news"]) == (ExitCode.CLEAN, 2, False)
    assert {path: path.read_bytes() for path in whole.tables.rglob("*.parquet")} == files

"""Every table says what the commands say of the same cluster, and remembers it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.tables.kinds import TABLES
from tieredctl_spark.tables.reading import read_table

from tests.cli.command_line import this_process
from tests.cli.crashed_cluster import CAPTURE, crashed_cluster_on_disk
from tests.spark.pipeline.captured_pipeline import CapturedPipeline, comparable, contents, cut_copy, grow
from tests.spark.segment_documents import documents_of
from tieredctl.cli.arguments import clock_ms
from tieredctl.errors import ExitCode
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.wiring.orphans import ScanPlaces, opened_scan
from tieredctl.wiring.places import MetadataPlace, StorePlace

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

CONFIG = """
prices:
  - {store: "file:", perGiBMonth: 0.5, perThousandPuts: 0.01, currency: EUR}
"""
HOUR_MS = 3_600_000
NOT_OWN = ("clusterId", "runId", "schemaVersion", "day")


@pytest.fixture(autouse=True)
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))


@pytest.fixture
def crashed(captures: Path, tmp_path: Path) -> CapturedPipeline:
    """A cluster with orphans of every cause."""
    copied = crashed_cluster_on_disk(this_process, captures / CAPTURE, tmp_path)
    return CapturedPipeline(copied.log_dir, copied.bucket, "aiven", tmp_path / "tables")


def said(pipeline: CapturedPipeline, *words: str) -> dict[str, Any]:
    """What a command says of the same places."""
    outcome = this_process(*words, *pipeline.places, "-o", "json")
    assert outcome.out, outcome.err
    return outcome.document()


def codes_of_scan(pipeline: CapturedPipeline) -> set[str]:
    metadata, store = MetadataPlace((pipeline.data,)), StorePlace(f"file:{pipeline.store}", layout=pipeline.layout)
    with opened_scan(ScanPlaces(metadata, store), ScanOptions(clock_ms(), HOUR_MS)) as opened:
        opened.scan.run()
        return {one.code.value for one in opened.scan.findings}


def without_own(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in NOT_OWN}


def test_tables_equal_what_commands_say(crashed: CapturedPipeline, spark: SparkSession) -> None:
    metadata = ("--log-dir", str(crashed.data), "-o", "json")

    code, summary = crashed.run("--min-age", "1h")

    scan = said(crashed, "orphans", "scan", "--min-age", "1h")
    verified = said(crashed, "verify", "--level", "listing")
    segments = this_process("metadata", "segments", *metadata).document()["items"]
    events = this_process("metadata", "format", "--log-dir", crashed.data, "-o", "jsonl").lines()
    listed = this_process("remote", "ls", *crashed.places[2:], "-o", "jsonl").lines()
    costs = said(crashed, "estimate", "cost", "--now", summary["looked"])["items"]

    rows = [without_own(row) for row in crashed.rows("segments").to_pylist()]
    assert documents_of(rows) == segments
    assert len(crashed.rows("events")) == len(events)
    objects = Counter[tuple[Any, ...]]()
    for one in listed:
        topic = one["key"].split("/")[1].rpartition("-" + one["topicId"])[0] if one["topicId"] else None
        objects[topic, one["topicId"], one["part"]] += one["size"]
    stored = {
        (row["topic"], row["topicId"], row["part"]): row["bytes"] for row in crashed.rows("objects_daily").to_pylist()
    }
    assert stored == objects
    assert comparable(map(without_own, crashed.rows("cost_daily").to_pylist())) == comparable(costs)
    orphans = [one for one in scan["items"] if one["status"] == "orphan"]
    found = crashed.rows("orphans_daily").to_pylist()
    assert Counter(cause for row in found for cause in [row["cause"]] * row["objects"]) == Counter(
        one["cause"] for one in orphans
    )
    assert sum(row["bytes"] for row in found) == sum(one["size"] for one in orphans)
    codes = {row["code"] for row in crashed.rows("findings").to_pylist()}
    assert codes == {one["code"] for one in verified["items"]} | codes_of_scan(crashed)
    assert sum(row["segments"] for row in crashed.rows("coverage").to_pylist()) >= verified["summary"]["segments"]
    assert code == summary["exitCode"]
    for name in TABLES:
        table, frame = crashed.rows(name), read_table(spark, str(crashed.tables), name)
        assert set(frame.columns) == set(table.column_names), name
        assert frame.count() == len(table) == summary["rows"][name], name
        assert {row["clusterId"] for row in table.to_pylist()} <= {"rTFWgbQKRvehFNx-PhMpIg"}, name
        assert list((crashed.tables / name).rglob("*.parquet")), name


def test_the_history_of_a_segment_is_that_of_its_events(crashed: CapturedPipeline) -> None:
    crashed.run()

    history = crashed.rows("segment_history").to_pylist()
    places = {(row["metadataPartition"], row["metadataOffset"]) for row in history}
    by_segment: dict[str, list[dict[str, Any]]] = {}
    for row in history:
        by_segment.setdefault(row["segmentId"], []).append(row)
    assert len(places) == len(history)
    for segment_id, states in list(by_segment.items())[:20]:
        words = ("metadata", "history", segment_id, "--log-dir", crashed.data, "-o", "json")
        events = this_process(*words).document()["items"]
        taken = {(row["metadataPartition"], row["metadataOffset"]): row["state"] for row in states}
        known = {(one["metadataPartition"], one["metadataOffset"]): one["state"] for one in events}
        assert taken.items() <= known.items(), segment_id
        ordered = sorted(states, key=lambda row: (row["metadataPartition"], row["metadataOffset"]))
        ends = [row["validTo"] for row in ordered[:-1]]
        assert ends == [row["validFrom"] for row in ordered[1:]], segment_id
    current = {row["segmentId"]: row["state"] for row in crashed.rows("segments").to_pylist()}
    last = {row["segmentId"]: row["state"] for row in history if row["validTo"] is None}
    assert current.items() <= last.items()
    assert {state for one, state in last.items() if one not in current} <= {"DELETE_SEGMENT_FINISHED"}


def test_a_run_without_news_changes_no_row_and_starts_nothing(
    kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")
    pipeline.run()
    files = {path: path.read_bytes() for path in pipeline.tables.rglob("*.parquet")}
    monkeypatch.setattr("tieredctl_spark.pipeline.run.spark_session", None)

    code, summary = pipeline.run()

    assert code == ExitCode.CLEAN
    assert (summary["version"], summary["news"]) == (2, False)
    assert {path: path.read_bytes() for path in pipeline.tables.rglob("*.parquet")} == files


def test_new_events_come_once_and_make_the_same_tables(kafka_4: Path, tmp_path: Path) -> None:
    cut = cut_copy(kafka_4, tmp_path / "cut", 0.6)
    whole = CapturedPipeline.of_kafka(kafka_4, tmp_path / "whole")
    grown = CapturedPipeline(cut, whole.store, "local", tmp_path / "grown")

    _, first = grown.run()
    grow(cut, kafka_4)
    _, second = grown.run()
    whole.run()

    events = grown.rows("events").to_pylist()
    places = Counter((row["metadataPartition"], row["metadataOffset"]) for row in events)
    assert 0 < first["rows"]["events"] < second["rows"]["events"]
    assert set(places.values()) == {1}
    found, expected = contents(grown), contents(whole)
    # What was missing from the cut log was orphaned then, and is resolved now.
    del found["findings"], expected["findings"]
    assert found == expected
    assert all(row["resolved"] for row in grown.rows("findings").to_pylist())

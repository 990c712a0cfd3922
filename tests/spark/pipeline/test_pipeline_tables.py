"""Every table says what the commands say of the same cluster."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.jobs import backfill
from tieredctl_spark.tables.files import table_urls
from tieredctl_spark.tables.kinds import TABLES
from tieredctl_spark.tables.reading import read_table

from tests.cli.command_line import Outcome, this_process
from tests.cli.crashed_cluster import CAPTURE, CLUSTER_ID, crashed_cluster_on_disk
from tests.spark.pipeline.captured_pipeline import CapturedPipeline, comparable
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


class Done(NamedTuple):
    """A run that is done."""

    pipeline: CapturedPipeline
    code: int
    summary: dict[str, Any]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """A table's, without day and provenance."""
        rows = self.pipeline.rows(name).to_pylist()
        return [{column: row[column] for column in row if column not in NOT_OWN} for row in rows]

    def command(self, *words: str) -> dict[str, Any]:
        """What a command says of the same places."""
        outcome = this_process(*words, *self.pipeline.places, "-o", "json")
        assert outcome.out, outcome.err
        return outcome.document()

    def metadata(self, *words: str) -> list[dict[str, Any]]:
        """What a command says of the metadata."""
        items: list[dict[str, Any]] = this_process(
            "metadata", *words, "--log-dir", self.pipeline.data, "-o", "json"
        ).document()["items"]
        return items

    def status(self, *words: str) -> Outcome:
        return this_process("pipeline", "status", "--tables", str(self.pipeline.tables), *words)


@pytest.fixture(scope="module")
def done(spark: SparkSession, captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Of a cluster with orphans of every cause, and with prices."""
    folder = tmp_path_factory.mktemp("pipeline")
    (folder / "config.yaml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIEREDCTL_CONFIG", str(folder / "config.yaml"))
        copied = crashed_cluster_on_disk(this_process, captures / CAPTURE, folder)
        pipeline = CapturedPipeline(copied.log_dir, copied.bucket, "aiven", folder / "tables")
        yield Done(pipeline, *pipeline.run("--min-age", "1h"))


def test_segments_are_those_of_metadata_segments(done: Done) -> None:
    assert documents_of(done.rows("segments")) == done.metadata("segments")


def test_events_are_those_of_metadata_format(done: Done) -> None:
    found = [(row["metadataPartition"], row["metadataOffset"]) for row in done.rows("events")]

    assert len(set(found)) == len(found)
    assert len(found) == len(this_process("metadata", "format", "--log-dir", done.pipeline.data, "-o", "jsonl").lines())


def test_the_history_of_a_segment_is_that_of_its_events(done: Done) -> None:
    history = done.rows("segment_history")
    places = {(row["metadataPartition"], row["metadataOffset"]) for row in history}
    by_segment: dict[str, list[dict[str, Any]]] = {}
    for row in history:
        by_segment.setdefault(row["segmentId"], []).append(row)
    assert len(places) == len(history)
    for segment_id, states in list(by_segment.items())[:20]:
        events = done.metadata("history", segment_id)
        taken = {(row["metadataPartition"], row["metadataOffset"]): row["state"] for row in states}
        known = {(one["metadataPartition"], one["metadataOffset"]): one["state"] for one in events}
        assert taken.items() <= known.items(), segment_id
        ordered = sorted(states, key=lambda row: (row["metadataPartition"], row["metadataOffset"]))
        ends = [row["validTo"] for row in ordered[:-1]]
        assert ends == [row["validFrom"] for row in ordered[1:]], segment_id
    current = {row["segmentId"]: row["state"] for row in done.rows("segments")}
    last = {row["segmentId"]: row["state"] for row in history if row["validTo"] is None}
    assert current.items() <= last.items()
    assert {state for one, state in last.items() if one not in current} <= {"DELETE_SEGMENT_FINISHED"}


def test_objects_are_those_of_remote_ls(done: Done) -> None:
    listed = this_process("remote", "ls", *done.pipeline.places[2:], "-o", "jsonl").lines()

    expected = Counter[tuple[Any, ...]]()
    for one in listed:
        expected[one["topicId"], one["part"], "objects"] += 1
        expected[one["topicId"], one["part"], "bytes"] += one["size"]
    found = Counter[tuple[Any, ...]]()
    for row in done.rows("objects_daily"):
        for name in ("objects", "bytes"):
            found[row["topicId"], row["part"], name] += row[name]
    assert found == expected


def test_costs_are_those_of_estimate_cost(done: Done) -> None:
    estimated = done.command("estimate", "cost", "--now", done.summary["looked"])["items"]

    assert comparable(done.rows("cost_daily")) == comparable(estimated)


def test_orphans_are_those_of_orphans_scan(done: Done) -> None:
    scanned = done.command("orphans", "scan", "--min-age", "1h")["items"]

    orphans = [one for one in scanned if one["status"] == "orphan"]
    found = done.rows("orphans_daily")
    causes = Counter[str]()
    for row in found:
        causes[row["cause"]] += row["objects"]
    assert causes == Counter(one["cause"] for one in orphans)
    assert sum(row["bytes"] for row in found) == sum(one["size"] for one in orphans)


def test_findings_are_those_of_verify_and_orphans_scan(done: Done) -> None:
    metadata, store = MetadataPlace((done.pipeline.data,)), StorePlace(f"file:{done.pipeline.store}", layout="aiven")
    with opened_scan(ScanPlaces(metadata, store), ScanOptions(clock_ms(), HOUR_MS)) as opened:
        opened.scan.run()
        of_scan = {one.code.value for one in opened.scan.findings}
    verified = done.command("verify", "--level", "listing")

    rows = done.rows("findings")
    assert {row["code"] for row in rows} == {one["code"] for one in verified["items"]} | of_scan
    assert all(row["firstSeen"] == row["lastSeen"] and row["resolved"] is None for row in rows)
    assert done.code == done.summary["exitCode"] == ExitCode.FINDINGS
    assert sum(row["segments"] for row in done.rows("coverage")) >= verified["summary"]["segments"]


def test_lags_and_forecasts_count_every_finished_copy(done: Done) -> None:
    history = [row for row in done.rows("segment_history") if row["state"] == "COPY_SEGMENT_FINISHED"]
    finished = [row for row in done.rows("segments") if row["state"] == "COPY_SEGMENT_FINISHED"]

    lags, forecast = done.rows("copy_lag_hourly"), done.rows("retention_forecast")
    assert sum(row["copies"] for row in lags) == sum(row["maxTimestamp"] is not None for row in history)
    longest = max(row["validFrom"] - row["maxTimestamp"] for row in history if row["maxTimestamp"] is not None)
    assert max(row["longestMs"] for row in lags) == round(longest.total_seconds() * 1_000)
    assert sum(row["segments"] for row in forecast) == len(finished)
    assert {row["reason"] for row in forecast} == {"unknown"}  # no cluster tells its settings


def test_spark_reads_the_rows_that_are_there_and_each_says_whose_it_is(done: Done, spark: SparkSession) -> None:
    for name in ("events", "segments", "findings", "retention_forecast"):
        table, frame = done.pipeline.rows(name), read_table(spark, str(done.pipeline.tables), name)
        assert set(frame.columns) == set(table.column_names), name
        assert frame.count() == len(table), name
    for name in TABLES:
        table = done.pipeline.rows(name)
        assert len(table) == done.summary["rows"][name], name
        urls = table_urls(str(done.pipeline.tables), name)
        assert sum(pq.read_metadata(url.removeprefix("file:")).num_rows for url in urls) == len(table), name
        assert set(table.column("clusterId").to_pylist()) <= {CLUSTER_ID}, name
        assert set(table.column("runId").to_pylist()) <= {done.summary["runId"]}, name


def test_status_shows_the_tables_and_writes_a_page(done: Done, tmp_path: Path) -> None:
    shown = done.status("-o", "json", "--report", str(tmp_path / "page.html")).document()

    assert {one["table"]: one["rows"] for one in shown["items"]} == done.summary["rows"]
    assert shown["summary"]["due"] == []
    page = (tmp_path / "page.html").read_text()
    for words in ("Stored, by topic", "Longest copy lag", "Coverage", "Cost", "object-unreferenced"):
        assert words in page, words


def test_tables_in_the_store_or_in_two_places_are_refused(done: Done) -> None:
    inside = done.pipeline.into(done.pipeline.store / "tables")

    for pipeline, words, sentence in (
        (inside, (), "is in the store itself"),
        (done.pipeline, ("--catalog", "lake"), "cannot be combined"),
    ):
        code, said = pipeline.refused(*words)
        assert (code, sentence in said) == (ExitCode.USAGE, True), said


def test_releases_without_a_runtime_refuse_a_catalog(kafka_4: Path, tmp_path: Path) -> None:
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")
    words = ["--topic", "orders7", "--output", str(tmp_path / "waiting")]

    code, sentence = pipeline.refused_into("--catalog", "lake")
    with redirect_stderr(io.StringIO()) as said:
        code_of_backfill = backfill.main([*pipeline.places, *words, "--catalog", "lake.orders"])

    assert code == code_of_backfill == ExitCode.USAGE
    assert "have no runtime for Spark" in said.getvalue()
    assert sentence.endswith(said.getvalue())
    assert os.listdir(tmp_path) == []

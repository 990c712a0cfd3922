"""The pipeline as a stream: a run for each batch of news, and each event once, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tieredctl_spark.jobs import pipeline as job
from tieredctl_spark.pipeline.following import Following, follow_pipeline
from tieredctl_spark.pipeline.run import PipelineOptions, PipelineRun
from tieredctl_spark.tables.table_store import TablesPlace, current

from tests.cli.command_line import environment
from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.rigs.waiting import wait_until
from tests.spark.pipeline.captured_pipeline import CapturedPipeline, contents, cut_copy, cut_log, grow
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

pytestmark = pytest.mark.spark

SECONDS = 300


class Killed(BaseException):
    """Nothing of the driver goes on."""


def follow(pipeline: CapturedPipeline, ended: Callable[[PipelineRun], object], list_every_ms: int = 3_600_000) -> None:
    """Until something is raised."""
    metadata, store = MetadataPlace((pipeline.data,)), StorePlace(f"file:{pipeline.store}", layout=pipeline.layout)
    tables = TablesPlace.given(str(pipeline.tables), {})
    options = PipelineOptions(metadata, store, TopicsPlace.beside(metadata), tables)
    options = replace(options, list_every_ms=list_every_ms)
    follow_pipeline(options, Following(f"{pipeline.tables}-checkpoint", 100), {}, ended)


def places_of_events(pipeline: CapturedPipeline) -> Counter[tuple[int, int]]:
    events = pipeline.rows("events").to_pylist()
    return Counter((row["metadataPartition"], row["metadataOffset"]) for row in events)


@pytest.mark.usefixtures("spark")
def test_a_batch_of_news_is_a_run_and_one_that_spark_gives_again_changes_nothing(kafka_4: Path, tmp_path: Path) -> None:
    whole = CapturedPipeline.of_kafka(kafka_4, tmp_path / "whole")
    grown = replace(whole, data=cut_copy(kafka_4, tmp_path / "cut", 0.6), tables=tmp_path / "grown")
    news: list[bool] = []

    def until_the_second_news(done: PipelineRun) -> None:
        news.append(done.had_news)
        if len(news) == 1:
            grow(grown.data, kafka_4)
        elif done.had_news:
            raise Killed  # its tables are current, and Spark has not noted it

    def until_the_batch_comes_again(done: PipelineRun) -> None:
        news.append(done.had_news)
        if len(news) == 2:
            raise Killed

    with pytest.raises(Killed):
        follow(grown, until_the_second_news)
    before, firsts = contents(grown), news.copy()
    news.clear()
    with pytest.raises(Killed):
        follow(grown, until_the_batch_comes_again)
    whole.run()

    assert (firsts[0], firsts[-1], news) == (True, True, [False, False])
    after, expected = contents(grown), contents(whole)
    assert after == before
    assert set(places_of_events(grown).values()) == {1}
    # What was missing from the cut log was orphaned then, and is resolved now.
    del after["findings"], expected["findings"]
    assert after == expected

    # A batch is answered although a listing is always due.
    noted = tmp_path / "grown-checkpoint/commits"
    known = {*os.listdir(noted)}

    def until_spark_has_noted_it(_done: PipelineRun) -> None:
        news.append(True)
        if {*os.listdir(noted)} > known or len(news) == 10:
            raise Killed

    with pytest.raises(Killed):
        follow(grown, until_spark_has_noted_it, list_every_ms=0)
    assert {*os.listdir(noted)} > known


@pytest.mark.exhaustive
@pytest.mark.usefixtures("spark")
def test_a_log_that_loses_its_end_ends_the_stream_in_a_sentence(kafka_4: Path, tmp_path: Path) -> None:
    pipeline = replace(
        CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables"), data=cut_copy(kafka_4, tmp_path / "cut", 0.6)
    )
    news: list[bool] = []

    def cut_once_spark_has_read_it(done: PipelineRun) -> None:
        news.append(done.had_news)
        if len(news) == 2:
            for log in pipeline.data.glob("__remote_log_metadata-*/*.log"):
                cut_log(log, 0.3)

    with pytest.raises(TieredctlError) as raised:
        follow(pipeline, cut_once_spark_has_read_it)

    assert raised.value.code is ErrorCode.UNREADABLE
    assert "but it was read up to offset" in raised.value.message


def test_releases_without_streams_refuse_it_in_a_sentence(
    kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tieredctl_spark.missing_streams.find_spec", lambda _: None)
    pipeline = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")

    code = job.main([*pipeline.places, "--tables", str(pipeline.tables), "--stream", str(tmp_path / "checkpoint")])

    assert code == ExitCode.FAILURE
    assert "needs PySpark 4.2 or later" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.exhaustive
def test_a_driver_that_was_killed_is_started_again_and_ends_with_its_last_runs_code(
    kafka_4: Path, tmp_path: Path
) -> None:
    whole = CapturedPipeline.of_kafka(kafka_4, tmp_path / "tables")
    pipeline = replace(whole, data=cut_copy(kafka_4, tmp_path / "cut", 0.6))

    def version() -> int:
        if not pipeline.tables.exists():
            return 0
        found = current(TablesPlace.given(str(pipeline.tables), {}).open())
        return 0 if found is None else found.version

    with stream_of(pipeline) as killed:
        wait_until(lambda: version() >= 2, "its first batch is a run", SECONDS)
        os.killpg(killed.pid, signal.SIGKILL)
    grow(pipeline.data, kafka_4)
    seen = version()
    with stream_of(pipeline) as ended:
        wait_until(lambda: version() >= seen + 2, "it goes on", SECONDS)
        ended.send_signal(signal.SIGTERM)
        out, err = ended.communicate(timeout=SECONDS)

    runs = list(documents(out))
    assert ended.returncode == runs[-1]["summary"]["exitCode"], err
    assert [run["summary"]["version"] for run in runs] == list(range(seen + 1, version() + 1))
    assert runs[0]["summary"]["news"]
    assert "Traceback" not in err
    assert set(places_of_events(pipeline).values()) == {1}


def documents(text: str) -> Iterator[dict[str, Any]]:
    """JSON documents that follow one another."""
    decoder, position = json.JSONDecoder(), 0
    while text[position:].strip():
        position = text.index("{", position)
        document, position = decoder.raw_decode(text, position)
        yield document


def stream_of(pipeline: CapturedPipeline) -> subprocess.Popen[Any]:
    settings = {"spark.master": "local[2]"} | SMALL | INTERPRETED
    conf = [word for name, value in settings.items() for word in ("--spark-conf", f"{name}={value}")]
    words = [*pipeline.places, "--tables", str(pipeline.tables), "--stream", f"{pipeline.tables}-checkpoint"]
    return subprocess.Popen(
        [sys.executable, "-m", "tieredctl", "pipeline", "run", *words, "--interval", "1s", *conf, "-o", "json"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

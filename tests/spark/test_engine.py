"""`--engine spark` answers what `--engine local` answers, row for row."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tieredctl_local.layout import LocalLayout
from tieredctl_spark import engine as spark_engines
from tieredctl_spark.segment_rows import check_rows

from tests.spark.damage import REMOTE, damaged
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.protocol import Layout, ObjectStore, SegmentIdentity, SegmentReader
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification import engine as engines
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.verify import Verification, verify
from tieredctl.storage.file import FileStore
from tieredctl.storage.protocol import StoredObject

pytestmark = pytest.mark.spark

DEEP = [Level.HEADERS, Level.FULL]
CLOCK = Clock(now_ms=0, older_than_ms=0)


class Watched:
    """An engine that remembers what it was asked and what it answered."""

    def __init__(self, engine: engines.Engine) -> None:
        self._engine = engine
        self.tasks: list[SegmentTask] = []
        self.reports: list[SegmentReport] = []

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        self.tasks = list(tasks)
        for report in self._engine.check_segments(self.tasks, store, layout):
            self.reports.append(report)
            yield report


def verified(cluster: Path, engine: engines.Engine, level: Level, layout: Layout | None = None) -> Verification:
    stream = EventStream(LogDirectories([cluster / "data"]))
    store = FileStore(str(cluster / REMOTE))
    return verify(stream, store, layout or layout_named("local"), engine, VerifyOptions(level, CLOCK))


@pytest.mark.parametrize("level", DEEP)
def test_a_sound_cluster_gives_the_local_engines_reports_in_their_order(
    spark: SparkSession, cluster: Path, level: Level
) -> None:
    local, remote = Watched(engines.LocalEngine()), Watched(engines.engine_named("spark", {}))

    assert verified(cluster, remote, level) == verified(cluster, local, level)
    assert remote.reports == local.reports
    assert len(local.reports) > 100


@pytest.mark.parametrize("level", DEEP)
def test_a_damaged_cluster_gives_the_local_engines_findings(
    spark: SparkSession, cluster: Path, tmp_path: Path, level: Level
) -> None:
    copy = damaged(cluster, tmp_path)
    local, remote = Watched(engines.LocalEngine()), Watched(engines.engine_named("spark", {}))

    result = verified(copy, remote, level)

    assert result == verified(copy, local, level)
    assert remote.reports == local.reports
    assert exit_code_of(result.findings) is ExitCode.CORRUPTION
    assert sum(1 for report in remote.reports if report.findings) >= 2


def test_many_waves_keep_the_order(spark: SparkSession, kafka_4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_engines, "_WAVE_TASKS", 70)
    local, remote = Watched(engines.LocalEngine()), Watched(engines.engine_named("spark", {}))

    verified(kafka_4, local, Level.HEADERS)
    verified(kafka_4, remote, Level.HEADERS)

    assert len(remote.tasks) > 2 * 70
    assert remote.reports == local.reports


def test_no_segment_needs_no_job(spark: SparkSession, tmp_path: Path) -> None:
    engine = engines.engine_named("spark", {})

    assert list(engine.check_segments([], FileStore(str(tmp_path)), layout_named("local"))) == []


def test_a_session_of_others_is_left_as_it_was(spark: SparkSession, kafka_4: Path) -> None:
    slices = "spark.sql.leafNodeDefaultParallelism"
    before = spark.conf.get(slices, None)

    verified(kafka_4, engines.engine_named("spark", {}), Level.HEADERS)

    assert SparkSession.getActiveSession() is not None
    assert spark.conf.get(slices, None) == before
    assert spark.range(3).count() == 3


def test_tasks_run_outside_of_this_process(spark: SparkSession, kafka_4: Path, tmp_path: Path) -> None:
    driver = os.getpid()

    class Telling(LocalLayout):
        """Leaves a file named after the process that reads a segment."""

        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            (tmp_path / str(os.getpid())).touch()
            time.sleep(0.005)
            return super().open_segment(store, segment)

    local = Watched(engines.LocalEngine())
    verified(kafka_4, local, Level.HEADERS)
    engine = engines.engine_named("spark", {})

    list(engine.check_segments(local.tasks, FileStore(str(kafka_4 / REMOTE)), Telling()))

    readers = {file.name for file in tmp_path.iterdir()}
    assert len(readers) == 2
    assert str(driver) not in readers


def test_what_goes_wrong_on_an_executor_is_one_sentence(spark: SparkSession, kafka_4: Path) -> None:
    class Broken(LocalLayout):
        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            raise ValueError("what a mess\nit is")

    local = Watched(engines.LocalEngine())
    verified(kafka_4, local, Level.HEADERS)
    reports = engines.engine_named("spark", {}).check_segments(local.tasks, FileStore(str(kafka_4 / REMOTE)), Broken())

    with pytest.raises(TieredctlError) as failure:
        list(reports)

    assert failure.value.kind.code == "spark-failed"
    assert failure.value.message == "Spark failed: ValueError: what a mess"
    assert spark.range(3).count() == 3


def test_what_goes_to_executors_pickles(kafka_4: Path) -> None:
    store = FileStore(str(kafka_4 / REMOTE))
    check = partial(check_rows, store=store, layout=layout_named("local"))

    again = pickle.loads(pickle.dumps(check))

    assert again.keywords == {"store": store, "layout": layout_named("local")}


class Silent(FileStore):
    """A folder that can be listed, and then does not answer."""

    def head(self, key: str) -> StoredObject | None:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, f"{self.url} does not answer for {key}.")

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, f"{self.url} does not answer for {key}.")


def test_a_store_that_is_silent_is_not_asked_for_every_segment(
    spark: SparkSession, kafka_4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_engines, "_WAVE_TASKS", 100)
    local = Watched(engines.LocalEngine())
    verified(kafka_4, local, Level.HEADERS)
    engine = engines.engine_named("spark", {})

    reports = list(engine.check_segments(local.tasks, Silent(str(kafka_4 / REMOTE)), layout_named("local")))

    assert [report.segment_id for report in reports] == [task.metadata.segment_id for task in local.tasks]
    assert all(report.not_looked_at for report in reports[100:])

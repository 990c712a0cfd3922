"""`--engine spark` answers what `--engine local` answers, row for row."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.read_rate import ReadRate
from tieredctl_spark.segment_reading import SegmentReading

from tests.rigs.waiting import wait_until
from tests.spark.captured_tasks import captured_tasks
from tests.spark.damage import REMOTE, damaged, with_unknown_size
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Severity, exit_code_of
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification import engine as engines
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Layout, SegmentIdentity, SegmentReader
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.file import FileStore

pytestmark = pytest.mark.spark

DEEP = [pytest.param(Level.HEADERS, marks=pytest.mark.exhaustive), Level.FULL]
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


def with_findings(reports: Iterable[SegmentReport]) -> list[SegmentReport]:
    return [report for report in reports if report.findings]


def verified(cluster: Path, engine: engines.Engine, level: Level, layout: Layout | None = None) -> Verification:
    stream = EventStream(LogDirectories([cluster / "data"]))
    store = FileStore(str(cluster / REMOTE))
    return verify(stream, store, layout or layout_named("local"), engine, VerifyOptions(level, CLOCK))


def verified_alike(cluster: Path, level: Level) -> tuple[Verification, Watched, Watched]:
    """What both engines find, and what Spark's and the local one reported on the way."""
    remote, local = Watched(engines.engine_named("spark", {})), Watched(engines.LocalEngine())
    result = verified(cluster, remote, level)
    assert result == verified(cluster, local, level)
    return result, remote, local


@pytest.mark.parametrize("level", DEEP)
def test_a_sound_cluster_gives_the_local_engines_sums_and_no_report_of_each_segment(
    spark: SparkSession, cluster: Path, level: Level
) -> None:
    _, remote, local = verified_alike(cluster, level)

    assert sum(report.segments for report in remote.reports) == len(local.reports) > 100
    assert len(remote.reports) < 10


@pytest.mark.parametrize("level", DEEP)
def test_a_damaged_cluster_gives_the_local_engines_findings(
    spark: SparkSession, cluster: Path, tmp_path: Path, level: Level
) -> None:
    result, remote, local = verified_alike(damaged(cluster, tmp_path), level)

    assert with_findings(remote.reports) == with_findings(local.reports)
    assert exit_code_of(result.findings) is ExitCode.CORRUPTION
    assert sum(1 for report in remote.reports if report.findings) >= 2


@pytest.mark.parametrize("level", DEEP)
def test_a_segment_of_unknown_size_gives_the_local_engines_findings(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, level: Level
) -> None:
    result, _, _ = verified_alike(with_unknown_size(kafka_4, tmp_path), level)

    assert [one.code for one in result.findings if one.severity > Severity.INFO] == ["segment-size-unknown"]


def test_many_chunks_keep_the_order(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieredctl_spark.work_units._MOST_SEGMENTS", 15)
    copy = damaged(kafka_4, tmp_path)
    local, remote = Watched(engines.LocalEngine()), Watched(engines.engine_named("spark", {}))

    verified(copy, local, Level.FULL)
    verified(copy, remote, Level.FULL)

    assert with_findings(remote.reports) == with_findings(local.reports)


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
        """Leaves a file named after the process that reads a segment, and waits until another one reads too."""

        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            (tmp_path / str(os.getpid())).touch()
            wait_until(lambda: len(list(tmp_path.iterdir())) > 1, "another process reads", 60)
            return super().open_segment(store, segment)

    tasks = captured_tasks(kafka_4, Level.HEADERS)
    engine = engines.engine_named("spark", {})

    list(engine.check_segments(tasks, FileStore(str(kafka_4 / REMOTE)), Telling()))

    readers = {file.name for file in tmp_path.iterdir()}
    assert len(readers) == 2
    assert str(driver) not in readers


def test_what_nobody_foresaw_is_said_of_its_segment_and_the_others_are_read(spark: SparkSession, kafka_4: Path) -> None:
    tasks = captured_tasks(kafka_4, Level.HEADERS)
    victims = {tasks[number].metadata.segment_id for number in (0, 1, 60, -1)}

    class Broken(LocalLayout):
        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            if segment.segment_id in victims:
                raise ValueError("what a mess\nit is")
            return super().open_segment(store, segment)

    engine = engines.engine_named("spark", {})
    reports = list(engine.check_segments(tasks, FileStore(str(kafka_4 / REMOTE)), Broken()))

    findings = [finding for report in reports for finding in report.findings]
    assert len(findings) == len(victims)
    assert {finding.evidence["segmentId"] for finding in findings} == victims
    assert all(finding.kind.incomplete for finding in findings)
    assert {finding.message for finding in findings} == {"tieredctl failed on it: ValueError: what a mess"}
    assert sum(report.segments for report in reports) == len(tasks)


def test_without_credentials_the_executors_say_so_once(spark: SparkSession, kafka_4: Path, tmp_path: Path) -> None:
    class LockedOut(FileStore):
        """Refuses everybody, and leaves a mark for each request."""

        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            (tmp_path / key.rpartition("/")[2]).touch()
            raise TieredctlError(ErrorCode.NO_CREDENTIALS, "Unable to locate credentials.")

    tasks = captured_tasks(kafka_4, Level.HEADERS)
    store = LockedOut(str(kafka_4 / REMOTE))

    with pytest.raises(TieredctlError) as failure:
        list(engines.engine_named("spark", {}).check_segments(tasks, store, layout_named("local")))

    assert failure.value.code is ErrorCode.NO_CREDENTIALS
    assert failure.value.message == f"No executor could read {store.url}: Unable to locate credentials."
    assert len(list(tmp_path.iterdir())) < 10  # one of each Spark task's segments


def test_what_goes_to_executors_pickles(kafka_4: Path) -> None:
    reading = SegmentReading(FileStore(str(kafka_4 / REMOTE)), layout_named("local"), rate=ReadRate(1e6, "name"))

    assert pickle.loads(pickle.dumps(reading)) == reading


class Silent(FileStore):
    """A folder that can be listed, and then does not answer."""

    def head(self, key: str) -> StoredObject | None:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, f"{self.url} does not answer for {key}.")

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, f"{self.url} does not answer for {key}.")


def test_a_store_that_is_silent_is_not_asked_for_every_segment(
    spark: SparkSession, kafka_4: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieredctl_spark.work_units._SECONDS_PER_REQUEST", 0.5)
    tasks = captured_tasks(kafka_4, Level.HEADERS)
    engine = engines.engine_named("spark", {})

    reports = list(engine.check_segments(tasks, Silent(str(kafka_4 / REMOTE)), layout_named("local")))

    asked = [report for report in reports if report.not_looked_at is None]
    assert sum(report.segments for report in reports) == len(tasks)
    assert 0 < len(asked) < len(tasks) / 2
    passed = [report for report in reports if report.not_looked_at is not None]
    ids = {report.segment_id for report in asked}
    left = [task for task in tasks if task.metadata.segment_id not in ids]
    assert sum(report.objects for report in passed) == sum(len(task.keys) for task in left)

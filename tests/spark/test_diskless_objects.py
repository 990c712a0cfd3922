"""`diskless verify --engine spark` answers what `--engine local` answers, row for row."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.ops.diskless.bucket import read_bucket
from tieredctl_inkless.ops.diskless.object_engine import LocalObjects
from tieredctl_inkless.ops.diskless.object_reading import ObjectReport
from tieredctl_inkless.ops.diskless.object_tasks import ObjectTasks
from tieredctl_spark.engine import SparkEngine
from tieredctl_spark.object_reading import ObjectReading

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import TWO_PARTITIONS, flip
from tests.diskless.test_faults import TEN_FAULTS
from tests.rigs.inkless import READER, Inkless
from tests.shares import divided
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.verification.report import Level
from tieredctl.storage.file import FileStore

pytestmark = pytest.mark.spark


def verified(inkless: Inkless, tieredctl: Tieredctl, engine: str, level: str) -> tuple[int, Any, Any]:
    outcome = tieredctl(
        "diskless", "verify", "--level", level, "--engine", engine, *inkless.places, "-o", "json", "--progress", "none"
    )
    document = outcome.document()
    assert document["source"].pop("engine") == engine
    return outcome.exit_code, document["summary"], document["items"]


@contextmanager
def tasks_of(inkless: Inkless, level: Level) -> Iterator[ObjectTasks]:
    """All objects that have batches."""
    control_plane = PostgresControlPlane(inkless.server.url(inkless.database, READER))
    with read_bucket(FileStore(str(inkless.bucket)), control_plane) as bucket:
        numbers = np.flatnonzero(bucket.files.batch_counts)
        yield ObjectTasks(bucket, numbers, level, np.zeros(len(bucket.rows), np.bool_))


@pytest.mark.parametrize("level", divided(["listing", "headers", "full"]))
def test_the_capture_gives_the_local_engines_answer(
    spark: SparkSession, inkless: Inkless, tieredctl: Tieredctl, level: str
) -> None:
    answer = verified(inkless, tieredctl, "spark", level)

    assert answer == verified(inkless, tieredctl, "local", level)
    assert answer[1]["objects"] == 12


@pytest.mark.parametrize("name", divided([*TEN_FAULTS]))
def test_each_of_ten_faults_gives_the_local_engines_finding(
    spark: SparkSession, tidy: Inkless, tieredctl: Tieredctl, name: str
) -> None:
    fault = TEN_FAULTS[name]
    fault.make(tidy)

    exit_code, summary, items = verified(tidy, tieredctl, "spark", "full")

    assert (exit_code, summary, items) == verified(tidy, tieredctl, "local", "full")
    assert ([item["code"] for item in items], exit_code) == ([fault.code], fault.exit_code)


@pytest.mark.parametrize("fault", divided(["flipped byte", "object swapped", "batch row altered", "cut object"]))
def test_headers_alone_give_the_local_engines_findings(
    spark: SparkSession, tidy: Inkless, tieredctl: Tieredctl, fault: str
) -> None:
    TEN_FAULTS[fault].make(tidy)

    assert verified(tidy, tieredctl, "spark", "headers") == verified(tidy, tieredctl, "local", "headers")


def test_producers_are_checked_with_their_batches(spark: SparkSession, tidy: Inkless, tieredctl: Tieredctl) -> None:
    tidy.run("UPDATE producer_state SET producer_epoch = producer_epoch + 1 WHERE row_id = 4")

    exit_code, summary, items = verified(tidy, tieredctl, "spark", "full")

    assert (exit_code, summary, items) == verified(tidy, tieredctl, "local", "full")
    assert [item["code"] for item in items] == ["producer-state-mismatch"]
    assert items[0]["remedy"].startswith("tieredctl diskless explain ")


@pytest.mark.parametrize("level", [Level.FULL, pytest.param(Level.HEADERS, marks=pytest.mark.exhaustive)])
def test_sound_objects_are_one_report_of_each_task(spark: SparkSession, tidy: Inkless, level: Level) -> None:
    with tasks_of(tidy, level) as tasks:
        local = list(LocalObjects().read_objects(tasks, tasks.bucket.store, level))
        reports = list(SparkEngine({}).read_objects(tasks, tasks.bucket.store, level))

    def sums(reports: list[ObjectReport]) -> tuple[int, ...]:
        return tuple(
            sum(getattr(one, name) for one in reports) for name in ("objects", "bytes_read", "batches", "records")
        )

    assert sums(reports) == sums(local)
    assert all(report.is_sound for report in reports)
    assert len(local) == sum(report.objects for report in reports) == len(tasks) > len(reports)


def test_what_goes_to_executors_does_not_say_where_the_control_plane_is(tidy: Inkless) -> None:
    """So that none of them can ask it."""
    with tasks_of(tidy, Level.FULL) as tasks:
        sent = pickle.dumps((ObjectReading(tasks.bucket.store, Level.FULL).reports, list(tasks.batches())))

    assert tidy.bucket.name.encode() in sent
    for secret in (b"postgresql", READER.encode(), str(tidy.server.password_file).encode()):
        assert secret not in sent


class Broken(FileStore):
    """Fails on one object as nobody foresaw."""

    def stream(self, key: str, *words: int) -> Any:
        if key == TWO_PARTITIONS:
            raise ValueError("what a mess\nit is")
        return super().stream(key, *words)


def test_what_nobody_foresaw_is_said_of_its_object_and_the_others_are_read(spark: SparkSession, tidy: Inkless) -> None:
    with tasks_of(tidy, Level.FULL) as tasks:
        reports = list(SparkEngine({}).read_objects(tasks, Broken(str(tidy.bucket)), Level.FULL))

    (finding,) = [finding for report in reports for finding in report.findings]
    assert (finding.subject, finding.kind.incomplete) == (TWO_PARTITIONS, True)
    assert finding.message == "tieredctl failed on it: ValueError: what a mess"
    assert sum(report.objects for report in reports) == len(tasks)


class Silent(FileStore):
    """A folder that can be listed, and then does not answer; it leaves a mark for each request."""

    code = ErrorCode.STORE_UNREACHABLE

    def stream(self, key: str, *words: int) -> Any:
        raise TieredctlError(self.code, f"{self.url} does not answer.")


class LockedOut(Silent):
    code = ErrorCode.NO_CREDENTIALS


def test_a_store_that_is_silent_is_not_asked_for_every_object(spark: SparkSession, tidy: Inkless) -> None:
    with tasks_of(tidy, Level.FULL) as tasks:
        reports = list(SparkEngine({}).read_objects(tasks, Silent(str(tidy.bucket)), Level.FULL))

    assert sum(report.objects for report in reports) == len(tasks)
    assert all(report.silent or report.is_passed_over for report in reports)
    assert {report.silent.message for report in reports if report.silent} == {f"file:{tidy.bucket} does not answer."}


def test_without_credentials_the_executors_say_so_once(spark: SparkSession, tidy: Inkless) -> None:
    with tasks_of(tidy, Level.FULL) as tasks, pytest.raises(TieredctlError) as failure:
        list(SparkEngine({}).read_objects(tasks, LockedOut(str(tidy.bucket)), Level.FULL))

    assert failure.value.code is ErrorCode.NO_CREDENTIALS
    assert failure.value.message.startswith("No executor could read ")


def test_an_object_that_is_deleted_meanwhile_is_missing_and_its_file_is_named(
    spark: SparkSession, tidy: Inkless
) -> None:
    with tasks_of(tidy, Level.FULL) as tasks:
        Path(tidy.bucket, TWO_PARTITIONS).unlink()
        reports = list(SparkEngine({}).read_objects(tasks, tasks.bucket.store, Level.FULL))

        (missing,) = [tasks.bucket.files.keys[report.file] for report in reports if report.is_missing]

    assert missing == TWO_PARTITIONS


def test_many_units_keep_every_object(
    spark: SparkSession, tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieredctl_spark.work_units._MOST_SEGMENTS", 2)
    flip(TWO_PARTITIONS, 1000)(tidy)

    assert verified(tidy, tieredctl, "spark", "full") == verified(tidy, tieredctl, "local", "full")

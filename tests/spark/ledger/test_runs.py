"""The ledger: what it knows to be sound is not read again, and whatever may have changed is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.planned_work import PlannedWork, runs_at_work
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions

from tests.rigs.waiting import wait_until
from tests.spark.captured_tasks import captured_tasks
from tests.spark.damage import REMOTE
from tests.spark.ledger.recorded_runs import HALF_A_DAY, Runs, ids, telling
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ports.layout import Part, SegmentIdentity, SegmentReader
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.file import FileStore

pytestmark = pytest.mark.spark

LONG_AGO_MS = 1_700_000_000_000


def deadly(victim: str) -> LocalLayout:
    """Ends the process that reads a certain segment."""

    class Deadly(LocalLayout):
        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            if segment.segment_id == victim:
                os._exit(7)
            return super().open_segment(store, segment)

    return Deadly()


def with_log(task: SegmentTask, **changes: Any) -> SegmentTask:
    """A task whose log was listed otherwise."""
    listed: Mapping[Part, StoredObject] = {**task.listed, Part.LOG: task.listed[Part.LOG]._replace(**changes)}
    return replace(task, listed=listed)


def listed_without_version(task: SegmentTask, modified_ms: int) -> SegmentTask:
    listed = {part: one._replace(version="", last_modified_ms=modified_ms) for part, one in task.listed.items()}
    return replace(task, listed=listed)


def now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000)


def test_what_changed_or_cannot_be_told_is_read_again_and_nothing_else(runs: Runs, tasks: list[SegmentTask]) -> None:
    first = tasks[:12]
    first[5] = listed_without_version(first[5], LONG_AGO_MS)
    first[6] = listed_without_version(first[6], now_ms() - 60_000)
    first[7] = listed_without_version(first[7], 0)
    assert runs.read(first) == ids(first)

    second = list(first)
    second[0] = with_log(first[0], size=first[0].listed[Part.LOG].size + 1)
    second[1] = with_log(first[1], version="another")
    second[2] = with_log(first[2], last_modified_ms=first[2].listed[Part.LOG].last_modified_ms + 1)
    second[3] = replace(first[3], listed={part: one for part, one in first[3].listed.items() if part is Part.LOG})
    second[4] = replace(first[4], metadata=replace(first[4].metadata, author=first[4].metadata.author + 1))
    second[8] = with_log(first[8], storage_class="GLACIER_IR")

    assert runs.read(second) == ids([*second[:5], second[6], second[7]])
    assert runs_at_work(runs.output) == set()
    assert not any((runs.folder / "output/work").rglob("*.parquet"))


def test_what_was_read_longer_ago_than_asked_or_less_deep_is_read_again(runs: Runs, tasks: list[SegmentTask]) -> None:
    shallow, deep = tasks[:3], [replace(task, level=Level.FULL) for task in tasks[:4]]

    assert runs.read(shallow) == ids(shallow)
    assert runs.read(deep) == ids(deep)
    assert runs.read(tasks[:4]) == set()
    assert runs.read(shallow, max_age=timedelta(0)) == ids(shallow)


def test_damage_is_looked_at_again_until_it_is_mended(spark: SparkSession, kafka_4: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(kafka_4, tmp_path / "copy"))
    runs = Runs(spark, tmp_path, FileStore(str(copy / REMOTE)))
    before = [replace(task, level=Level.FULL) for task in captured_tasks(copy, Level.FULL)[:4]]
    log = copy / REMOTE / before[2].keys[Part.LOG]
    sound = log.read_bytes()

    log.write_bytes(sound[:70] + bytes([sound[70] ^ 1]) + sound[71:])
    altered = captured_tasks(copy, Level.FULL)[:4]
    found, again = runs.reports(altered), runs.reports(altered)
    log.write_bytes(sound)
    mended = runs.reports(captured_tasks(copy, Level.FULL)[:4])

    def damaged(reports: list[SegmentReport]) -> set[object]:
        return {finding.evidence["segmentId"] for report in reports for finding in report.findings}

    assert damaged(mended) == set()
    assert damaged(found) == damaged(again) == {before[2].metadata.segment_id}


def test_a_budget_is_spent_on_what_was_tried_longest_ago_though_it_cannot_be_read(
    runs: Runs, tasks: list[SegmentTask]
) -> None:
    some = tasks[:20]
    size = {task.metadata.segment_id: sum(one.size for one in task.listed.values()) for task in some}
    budget = sum(size.values()) // 2
    tried, unreadable = runs.folder / "tried", ids(some[::2])
    tried.mkdir()

    class Unreadable(LocalLayout):
        def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
            (tried / segment.segment_id).touch()
            if segment.segment_id in unreadable:
                raise ValueError("it cannot be read")
            return super().open_segment(store, segment)

    def attempted() -> set[str]:
        for path in tried.iterdir():
            path.unlink()
        runs.reports(some, Unreadable(), RunOptions(timedelta(0), budget))
        return {path.name for path in tried.iterdir()}

    first, second = attempted(), attempted()

    for attempt in (first, second):
        assert sum(size[one] for one in attempt) <= budget
        assert attempt & unreadable
        assert attempt - unreadable
    assert not first & second


def test_a_budget_without_room_for_the_first_segment_is_refused(runs: Runs, tasks: list[SegmentTask]) -> None:
    with pytest.raises(TieredctlError) as refusal:
        runs.read(tasks[:3], max_bytes=2)

    enough = int(refusal.value.hint.rpartition(" ")[2].rstrip("."))
    shutil.rmtree(runs.folder / "told")
    assert refusal.value.code is ErrorCode.USAGE
    assert runs.read(tasks[:3], max_bytes=enough)


def test_a_worker_that_dies_of_a_segment_leaves_one_finding(runs: Runs, tasks: list[SegmentTask]) -> None:
    some = tasks[:3]

    reports = runs.reports(some, deadly(some[1].metadata.segment_id))

    (finding,) = [finding for report in reports for finding in report.findings]
    assert finding.evidence["segmentId"] == some[1].metadata.segment_id
    assert finding.kind.incomplete
    assert runs.read(some) == {some[1].metadata.segment_id}


_KILLED = """
import sys, time
from datetime import timedelta
from pathlib import Path
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions
from tieredctl_spark.session import spark_session
from tieredctl_spark import work_units
from tieredctl.ops.verification.report import Level
from tieredctl.storage.file import FileStore
from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.spark.captured_tasks import captured_tasks
from tests.spark.damage import REMOTE
from tests.spark.ledger.recorded_runs import Runs

cluster, output = Path(sys.argv[1]), sys.argv[2]

class Slow(LocalLayout):
    def open_segment(self, store, segment):
        time.sleep(0.2)
        return super().open_segment(store, segment)

work_units._SECONDS_PER_REQUEST = 0.5
with spark_session(SMALL | INTERPRETED | {"spark.master": "local[2]"}) as session:
    runs = Runs(session, Path(output).parent, FileStore(str(cluster / REMOTE)))
    engine = RecordedEngine(runs.output, runs.ledger, RunOptions(timedelta(hours=12)))
    list(engine.check_segments(captured_tasks(cluster, Level.HEADERS), runs.store, Slow()))
"""


@pytest.fixture
def killed_run(kafka_4: Path, runs: Runs) -> None:
    """The driver of a run is killed once it has committed a chunk."""
    output = runs.folder / "output"
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(kafka_4), str(output)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )
    try:
        wait_until(lambda: any(output.glob("ledger/_manifests/*2.json")), "a chunk is committed", 240)
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.exhaustive
@pytest.mark.usefixtures("killed_run")
def test_a_run_whose_driver_was_killed_loses_only_what_it_had_not_committed(
    runs: Runs, tasks: list[SegmentTask]
) -> None:
    rows = runs.ledger.table.rows(["segmentId"]).toArrow()
    committed = set(rows["segmentId"].to_pylist())

    read = runs.read(tasks)

    assert committed
    assert read == ids(tasks) - committed
    assert read
    assert runs.read(tasks) == set()


def test_tasks_are_a_table_with_keys_sizes_versions_and_cost(runs: Runs, tasks: list[SegmentTask]) -> None:
    work = PlannedWork(runs.output, runs.store, LocalLayout(), "a-run")
    work.write(tasks[:3])

    rows = work.tasks.toArrow().to_pylist()

    assert {row["segmentId"] for row in rows} == ids(tasks[:3])
    assert all(one["key"] and one["version"] and one["size"] >= 0 for row in rows for one in row["objects"])
    assert all(row["bytesToRead"] > 0 and row["requests"] > 0 for row in rows)


def test_two_runs_in_one_folder_keep_to_their_own_work(runs: Runs, tasks: list[SegmentTask]) -> None:
    mine, other = tasks[:4], tasks[4:6]
    told = runs.folder / "mine"
    told.mkdir()
    engine = RecordedEngine(runs.output, runs.ledger, RunOptions(HALF_A_DAY))
    reports = engine.check_segments(mine, runs.store, telling(told))
    next(reports)  # its work is planned

    assert runs.read(other) == ids(other)
    assert sum(report.segments for report in reports) == len(mine)

    assert {path.name for path in told.iterdir()} == ids(mine)
    # As if the first had been killed before its end.
    assert runs.read(tasks[:7]) == ids(tasks[6:7])

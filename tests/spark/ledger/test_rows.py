"""The ledger's rows: which of several readings counts, and that compaction loses none of what is known."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as fn
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.ledger import Asked, Ledger
from tieredctl_spark.planned_work import PlannedWork, clear_work, runs_at_work
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_reading import READING_SCHEMA, failed_report, result_row
from tieredctl_spark.segment_rows import result_of
from tieredctl_spark.tables.files import folder_files
from tieredctl_spark.tables.kinds import READINGS
from tieredctl_spark.tables.manifest import DataFile, LedgerManifest
from tieredctl_spark.tables.table_store import Opened, TablesPlace, newest

from tests.metadata_logs import segment_id
from tests.shares import divided
from tests.spark.ledger import earlier_ledger
from tests.spark.ledger.recorded_runs import HALF_A_DAY, Runs
from tests.spark.pipeline.killed_runs import is_killed
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask
from tieredctl.ports.layout import Part

pytestmark = pytest.mark.spark


def entry(task: SegmentTask, report: SegmentReport) -> dict[str, Any]:
    """A row of the ledger, by READING_SCHEMA."""
    names = ("topic", "topicId", "partition", "startOffset", "endOffset", "segmentSizeInBytes")
    kept = dict.fromkeys(names) | {"level": Level.HEADERS.value, "fingerprint": task.metadata.segment_id}
    return result_row(kept, report, "file:store")


def enter(runs: Runs, run: str, rows: list[dict[str, Any]], began: datetime, ledger: Ledger | None = None) -> None:
    frame = runs.session.createDataFrame(pa.Table.from_pylist(rows, READING_SCHEMA), spark_schema(READING_SCHEMA))
    (ledger or runs.ledger).commit(frame, run, began)


def judged(runs: Runs, tasks: list[SegmentTask]) -> dict[str, dict[str, Any]]:
    """By fingerprint, what the ledger knows of some tasks."""
    ids = [task.metadata.segment_id for task in tasks]
    asked = pa.table({"segmentId": ids, "fingerprint": ids})
    frame = runs.ledger.judged(runs.session.createDataFrame(asked, spark_schema(asked.schema)), ASKED)
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return {row.pop("fingerprint"): row for row in rows}


def files(runs: Runs) -> tuple[DataFile, ...]:
    """Those of the newest version."""
    found = newest(runs.opened(runs.place), LedgerManifest)
    assert found is not None
    return folder_files(found.tables, READINGS.name)


def sound(task: SegmentTask) -> SegmentReport:
    return SegmentReport(task.metadata.segment_id)


def unknown(task: SegmentTask) -> SegmentReport:
    return failed_report(task, LocalLayout(), "it cannot be read")


def found(task: SegmentTask) -> SegmentReport:
    findings = SegmentFindings(task.metadata, task.keys)
    findings.add(FindingCode.BATCH_CORRUPT, Part.LOG, "a batch is damaged")
    return SegmentReport(task.metadata.segment_id, findings=tuple(findings.found))


def unseen(task: SegmentTask) -> SegmentReport:
    return SegmentReport(task.metadata.segment_id, not_looked_at="silence")


NOW = datetime.now(UTC)
NEVER = 1 << 30
"""Writes."""
ASKED = Asked(Level.HEADERS, NOW, HALF_A_DAY)


def test_of_several_rows_of_a_segment_in_one_run_the_gravest_counts(runs: Runs, tasks: list[SegmentTask]) -> None:
    gravest_first = [(found, unknown), (unknown, sound), (sound, unseen), (found, sound)]
    cases = list(zip(tasks, gravest_first, strict=False))
    rows = [entry(task, report(task)) for task, reports in cases for report in reports]
    enter(runs, "run", rows, NOW)
    enter(runs, "run", [entry(task, other(task)) for task, (_, other) in cases], NOW + timedelta(minutes=1))

    counted = runs.ledger.run("run").select("segmentId", "result").toArrow().to_pylist()

    assert {row["segmentId"]: row["result"] for row in counted} == {
        task.metadata.segment_id: result_of(graver(task)).value for task, (graver, _) in cases
    }
    assert len(counted) == len(cases)


def test_readings_have_the_drivers_time_of_before_they_began(runs: Runs, tasks: list[SegmentTask]) -> None:
    before = datetime.now(UTC)
    runs.reports(tasks[:5])
    after = datetime.now(UTC)

    rows = runs.ledger.table.rows(["checkedAt"])
    checked = rows.select(fn.unix_micros("checkedAt").alias("at")).distinct().toArrow().to_pylist()

    assert "checkedAt" not in READING_SCHEMA.names  # executors have no say
    assert all(before.timestamp() <= row["at"] / 1e6 <= after.timestamp() for row in checked)


def test_bytes_with_a_finding_are_read_again_whenever_a_driver_s_clock_calls_them_sound(
    runs: Runs, tasks: list[SegmentTask]
) -> None:
    """Of two results of one moment the graver counts, too."""
    seen = NOW - timedelta(hours=12)
    readings = [
        *((task, found, seen) for task in tasks[:3]),
        *((task, sound, seen + timedelta(hours=hours)) for task, hours in zip(tasks, (-24, 0.1, 11.9), strict=False)),
        *((tasks[3], report, NOW) for report in (found, sound)),
        *((tasks[4], report, NOW) for report in (sound, unknown)),
        (tasks[5], sound, NOW),
    ]
    for number, moment in enumerate(sorted({moment for _, _, moment in readings})):
        enter(
            runs, f"run-{number}", [entry(task, report(task)) for task, report, at in readings if at == moment], moment
        )

    known = judged(runs, tasks[:7])

    assert [one for one, row in known.items() if row["soundAt"]] == [tasks[5].metadata.segment_id]
    assert known.keys() == {task.metadata.segment_id for task in tasks[:7]}
    assert set(known[tasks[6].metadata.segment_id].values()) == {None, tasks[6].metadata.segment_id}


def test_files_are_put_together_and_a_segment_is_still_known_to_have_been_read(
    runs: Runs, tasks: list[SegmentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(runs, "first", [entry(task, sound(task)) for task in tasks[:1] * 3], NOW - timedelta(hours=2))
    enter(runs, "second", [entry(tasks[0], unknown(tasks[0])), entry(tasks[1], unseen(tasks[1]))], NOW)
    before = judged(runs, tasks[:2])
    monkeypatch.setattr("tieredctl_spark.ledger_rows._MOST_FILES", 1)

    runs.ledger.table.close("first")
    of_runs_at_work = files(runs)
    runs.ledger.table.close("second")

    assert len(of_runs_at_work) == 2
    assert [one.rows for one in files(runs)] == [2]
    assert judged(runs, tasks[:2]) == before
    first, second = (before[task.metadata.segment_id] for task in tasks[:2])
    assert first["lastTried"] - first["lastRead"] == timedelta(hours=2)
    assert (second["lastTried"], first["soundAt"], second["soundAt"]) == (None, None, None)


def test_wherever_a_run_is_killed_the_next_one_knows_what_was_known(
    runs: Runs, tasks: list[SegmentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it takes over an earlier ledger, enters what it read, or puts files together."""
    monkeypatch.setattr("tieredctl_spark.ledger_rows._MOST_FILES", 1)
    run, row = "20260701T130000Z-abcdef", entry(tasks[0], sound(tasks[0]))

    def killed_and_run_again(writes: int) -> tuple[bool, Counter[str]]:
        """With so many writes before the kill: whether it came, and what the ledger knows in the end."""
        mine = replace(runs, folder=runs.folder / str(writes))
        earlier_ledger.unpack(mine.folder / "output")

        def enter_and_close(opened: Opened) -> None:
            with spark_failures():
                ledger = replace(mine, opened=opened).ledger
                enter(mine, run, [row], NOW, ledger)
                ledger.table.close(run)

        died = is_killed(enter_and_close, mine.folder / "output/ledger", mine.folder / "moments", writes)
        if died:
            enter_and_close(TablesPlace.open_writable)
        known = mine.ledger.table.rows(["segmentId", "result", "checkedAt"])
        return died, Counter(map(str, known.toArrow().to_pylist()))

    died, whole = killed_and_run_again(NEVER)
    writes = len(list((runs.folder / str(NEVER) / "moments").iterdir()))
    ends = {number: killed_and_run_again(number) for number in divided(range(writes))}

    assert (died, writes >= 6) == (False, True)
    assert ends == dict.fromkeys(ends, (True, whole))
    assert whole.total() == earlier_ledger.ROWS - 1 + 1  # one was not looked at
    assert set(whole.values()) == {1}


def test_a_run_at_work_keeps_its_work_and_one_that_was_killed_long_ago_does_not(
    runs: Runs, tasks: list[SegmentTask]
) -> None:
    at_work, killed = "20200101T000000Z-abcdef", "20200101T000000Z-fedcba"
    for run, task, began in ((at_work, tasks[0], NOW), (killed, tasks[1], NOW - timedelta(days=2))):
        PlannedWork(runs.output, runs.store, LocalLayout(), run).write([task])
        enter(runs, run, [entry(task, sound(task))], began)
    PlannedWork(runs.output, runs.store, LocalLayout(), "of-others").write([tasks[1]])
    engine = RecordedEngine(runs.output, runs.ledger, RunOptions(HALF_A_DAY))
    list(engine.check_segments(tasks[2:4], runs.store, LocalLayout()))

    engine.tidy()

    assert runs_at_work(runs.output) == {at_work, engine.run}
    assert runs.output.runs("tasks") == {at_work, engine.run, "of-others"}
    engine.end()
    clear_work(runs.output, at_work)
    assert runs_at_work(runs.output) == set()
    assert runs.ledger.table.rows(["segmentId"]).count() == 4


def test_runs_that_enter_rows_at_once_lose_none(runs: Runs, tasks: list[SegmentTask]) -> None:
    some = [(f"run-{number}", task) for number, task in enumerate(tasks[:4])]

    with ThreadPoolExecutor(len(some)) as pool:
        list(pool.map(lambda one: enter(runs, one[0], [entry(one[1], sound(one[1]))], NOW), some))

    assert all(row["soundAt"] for row in judged(runs, tasks[:4]).values())


def test_an_earlier_ledger_is_imported_once_and_left_as_it_was(runs: Runs) -> None:
    output = runs.folder / "output"
    earlier_ledger.unpack(output)
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    work = PlannedWork(runs.output, earlier_ledger.bucket(), LocalLayout(), "a-run")
    work.write([earlier_ledger.segment(number) for number in range(1, 8)])

    tables = [runs.ledger.table.rows(["segmentId"]).count() for _ in range(2)]
    asked = Asked(Level.HEADERS, earlier_ledger.CHECKED, HALF_A_DAY)
    known = work.judged(runs.ledger, asked).where("isSound").select("segmentId").toArrow().to_pylist()

    assert tables == [earlier_ledger.ROWS] * 2
    assert {row["segmentId"] for row in known} == set(map(segment_id, (1, 2, 6)))
    assert {path: path.read_bytes() for path in before} == before

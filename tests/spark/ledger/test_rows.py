"""The ledger's rows: which of several readings counts, and that compaction loses none of what is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as fn
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.ledger import Asked, Ledger
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.planned_work import PlannedWork, clear_work, runs_at_work
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_reading import READING_SCHEMA, failed_report, result_row
from tieredctl_spark.segment_rows import result_of

from tests.shares import divided
from tests.spark.ledger.recorded_runs import HALF_A_DAY, Runs
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask
from tieredctl.ports.layout import Part

pytestmark = pytest.mark.spark


def entry(task: SegmentTask, report: SegmentReport) -> dict[str, Any]:
    """A row of the ledger, by READING_SCHEMA."""
    names = ("topic", "topicId", "partition", "startOffset", "endOffset", "segmentSizeInBytes")
    kept = dict.fromkeys(names) | {"level": Level.HEADERS.value, "fingerprint": task.metadata.segment_id}
    return result_row(kept, report)


def enter(runs: Runs, run: str, rows: list[dict[str, Any]], began: datetime, chunk: int = 0) -> None:
    frame = runs.session.createDataFrame(pa.Table.from_pylist(rows, READING_SCHEMA), spark_schema(READING_SCHEMA))
    Ledger(runs.output).commit(frame, run, chunk, began)


def judged(runs: Runs, tasks: list[SegmentTask]) -> dict[str, dict[str, Any]]:
    """By fingerprint, what the ledger knows of some tasks."""
    ids = [task.metadata.segment_id for task in tasks]
    asked = pa.table({"segmentId": ids, "fingerprint": ids})
    frame = Ledger(runs.output).judged(runs.session.createDataFrame(asked, spark_schema(asked.schema)), ASKED)
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return {row.pop("fingerprint"): row for row in rows}


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
ASKED = Asked(Level.HEADERS, NOW, HALF_A_DAY)


def test_of_several_rows_of_a_segment_in_one_run_the_gravest_counts(runs: Runs, tasks: list[SegmentTask]) -> None:
    gravest_first = [(found, unknown), (unknown, sound), (sound, unseen), (found, sound)]
    cases = list(zip(tasks, gravest_first, strict=False))
    rows = [entry(task, report(task)) for task, reports in cases for report in reports]
    enter(runs, "run", rows, NOW, chunk=0)
    enter(runs, "run", [entry(task, other(task)) for task, (_, other) in cases], NOW + timedelta(minutes=1), chunk=1)

    counted = Ledger(runs.output).run("run").select("segmentId", "result").toArrow().to_pylist()

    assert {row["segmentId"]: row["result"] for row in counted} == {
        task.metadata.segment_id: result_of(graver(task)).value for task, (graver, _) in cases
    }
    assert len(counted) == len(cases)


def test_readings_have_the_drivers_time_of_before_they_began(runs: Runs, tasks: list[SegmentTask]) -> None:
    before = datetime.now(UTC)
    runs.reports(tasks[:5])
    after = datetime.now(UTC)

    checked = (
        Ledger(runs.output).rows().select(fn.unix_micros("checkedAt").alias("at")).distinct().toArrow().to_pylist()
    )

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


def test_after_compaction_a_segment_is_still_known_to_have_been_read(runs: Runs, tasks: list[SegmentTask]) -> None:
    ledger = Ledger(runs.output)
    enter(runs, "first", [entry(tasks[0], sound(tasks[0]))], NOW - timedelta(hours=2))
    enter(runs, "second", [entry(tasks[0], unknown(tasks[0]))], NOW - timedelta(hours=1))

    before = judged(runs, tasks[:2])
    ledger.compact(ledger.runs())

    assert judged(runs, tasks[:2]) == before
    first, second = (before[task.metadata.segment_id] for task in tasks[:2])
    assert first["lastTried"] - first["lastRead"] == timedelta(hours=1)
    assert (second["lastTried"], first["soundAt"], second["soundAt"]) == (None, None, None)


@pytest.mark.parametrize("killed_before", divided(["never", "complete is noted", "chunks are removed"]))
def test_compaction_keeps_what_is_known_whenever_it_is_killed(
    runs: Runs, tasks: list[SegmentTask], monkeypatch: pytest.MonkeyPatch, killed_before: str
) -> None:
    ledger, some = Ledger(runs.output), tasks[:6]
    runs.read(some[:3])
    ledger.compact(ledger.runs())
    runs.read(some)

    class Killed(Exception):
        pass

    def end(*_: object) -> None:
        raise Killed

    if killed_before != "never":
        name = "write_table" if killed_before == "complete is noted" else "clear"
        monkeypatch.setattr(OutputFolder, name, end)
        with pytest.raises(Killed):
            ledger.compact(ledger.runs())
        monkeypatch.undo()
    ledger.compact(ledger.runs())

    assert not any((runs.folder / "output/ledger/chunks").rglob("*.parquet"))
    assert runs.read(some) == set()
    assert ledger.rows().select("segmentId").distinct().count() == len(some)


def test_compaction_leaves_the_work_and_rows_of_a_run_that_is_at_work(
    runs: Runs, tasks: list[SegmentTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes place once those that are left were killed long ago, whose work is removed at once."""
    monkeypatch.setattr("tieredctl_spark.recorded_engine._MOST_FILES", 0)
    at_work, killed = "20200101T000000Z-abcdef", "20200101T000000Z-fedcba"
    for run, task, began in ((at_work, tasks[0], NOW), (killed, tasks[1], NOW - timedelta(days=2))):
        PlannedWork(runs.output, runs.store, LocalLayout(), run).write([task])
        enter(runs, run, [entry(task, sound(task))], began)
    engine = RecordedEngine(runs.output, RunOptions(HALF_A_DAY))
    list(engine.check_segments(tasks[2:4], runs.store, LocalLayout()))

    engine.tidy()

    assert runs_at_work(runs.output) == {at_work, engine.run}
    assert Ledger(runs.output).runs() == {at_work, killed, engine.run}

    clear_work(runs.output, at_work)
    engine.tidy()
    engine.end()

    assert runs_at_work(runs.output) == set()
    assert Ledger(runs.output).runs() == set()
    assert Ledger(runs.output).rows().count() == 4


def test_a_table_is_removed_with_its_folder(runs: Runs) -> None:
    for run in ("a", "b"):
        runs.output.write_table(f"table/run={run}/part=1", pa.table({"x": [1]}))

    runs.output.clear("table/run=a")

    assert [path.name for path in (runs.folder / "output/table").iterdir()] == ["run=b"]
    assert runs.output.runs("table") == {"b"}
    runs.output.clear("table/run=b")
    assert runs.output.runs("table") == set()


def test_through_spark_connect_a_table_is_emptied_however_the_cluster_is_configured(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OutputFolder, "_removed", lambda *_: False)
    mode = "spark.sql.sources.partitionOverwriteMode"
    runs.output.write_table("table/run=a/part=1", pa.table({"x": [1]}))
    before = str(runs.session.conf.get(mode))
    runs.session.conf.set(mode, "dynamic")
    try:
        runs.output.clear("table/run=a")
    finally:
        runs.session.conf.set(mode, before)

    assert runs.output.runs("table") == set()
    assert not any((runs.folder / "output/table").rglob("*.parquet"))

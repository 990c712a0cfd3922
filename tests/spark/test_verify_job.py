"""The job for spark-submit: its results, its exit codes, and how it resumes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.jobs import verify as job
from tieredctl_spark.ledger import Ledger, ResumingEngine
from tieredctl_spark.output_folder import OutputFolder

from tests.metadata_logs import started
from tests.spark.damage import REMOTE, damaged
from tests.wiring.reading_order import COMMAND_LINE, LOCAL_LOGS, METADATA, SPARK_JOB, STORE_LISTED, read_in_order
from tieredctl.errors import ExitCode
from tieredctl.kafka.local_logs import read_local_logs
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.protocol import Layout, ObjectStore, Part
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.verify import verify
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore

pytestmark = pytest.mark.spark

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
STORE, LAYOUT = MemoryStore(), layout_named("local")


def arguments(cluster: Path, output: Path) -> list[str]:
    return [
        *("--log-dir", str(cluster / "data"), "--store", f"file:{cluster / REMOTE}", "--layout", "local"),
        *("--level", "full", "--output", str(output)),
    ]


def test_spark_submit_continues_where_a_job_was(
    spark: SparkSession, captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, output = damaged(captures / "kafka-4.3.1", tmp_path), tmp_path / "output"
    half = job.main([*arguments(cluster, output), "--subset", "1/2"])
    first = json.loads(capsys.readouterr().out)["summary"]

    command = [str(SPARK_SUBMIT), "--master", "local[2]", "--conf", "spark.ui.enabled=false", job.__file__]
    done = subprocess.run(
        [*command, *arguments(cluster, output)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    options = VerifyOptions(Level.FULL, Clock(0, 2**62), local_logs=read_local_logs([cluster / "data"]))
    source = LogDirectories([cluster / "data"])
    local = verify(EventStream(source), FileStore(str(cluster / REMOTE)), LAYOUT, LocalEngine(), options)
    summary = json.loads(done.stdout)
    findings = pq.read_table(output / "findings").to_pylist()
    rows = pq.read_table(output / "segments").to_pylist()
    assert half == ExitCode.CORRUPTION
    assert done.returncode == ExitCode.CORRUPTION, done.stderr
    assert 0 < first["segments"] == summary["summary"]["resumed"] < local.segments
    assert first["resumed"] == 0
    assert summary["summary"] == local.summary() | {"resumed": first["segments"], "exitCode": ExitCode.CORRUPTION}
    assert json.loads((output / "summary.json").read_text()) == summary
    assert [read_finding(row) for row in findings] == local.findings
    assert len({row["segmentId"] for row in rows}) == len(rows) == local.segments


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (["--subset", "9/3"], ExitCode.USAGE),
        (["--store", "file:/nowhere/at/all"], ExitCode.USAGE),
        (["--layout", "nothing"], ExitCode.USAGE),
        (["--export", "x"], ExitCode.USAGE),
        (["--metadata-source", "acme:x"], ExitCode.USAGE),
        (["--metadata-source", "acme"], ExitCode.USAGE),
        (["--metadata-source-option", "a=b"], ExitCode.USAGE),
    ],
)
def test_wrong_use_is_reported_in_a_sentence(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str], code: ExitCode
) -> None:
    assert job.main([*arguments(captures / "kafka-4.3.1", tmp_path), *wrong]) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 2


class Scripted:
    """An engine that gives prepared reports, and remembers what it was asked to read."""

    def __init__(self, **findings: Finding) -> None:
        self._findings = findings
        self.read: list[str] = []

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        for task in tasks:
            self.read.append(task.metadata.segment_id)
            finding = self._findings.get(f"at_{task.metadata.start_offset}")
            yield SegmentReport(task.metadata.segment_id, 1, 2, 3, (finding,) if finding else ())


def tasks(level: Level = Level.FULL, **changed: Any) -> list[SegmentTask]:
    """Three segments, from offsets 0, 10 and 20; the second's metadata changed."""
    segments = [started(2**100 + start, start, start + 9, **(changed if start == 10 else {})) for start in (0, 10, 20)]
    return [SegmentTask(metadata, {Part.LOG: f"{metadata.segment_id}.log"}, level) for metadata in segments]


@pytest.fixture
def ledger(spark: SparkSession, tmp_path: Path) -> Ledger:
    return Ledger(OutputFolder(spark, str(tmp_path)))


def resumed(ledger: Ledger, engine: Scripted, asked: list[SegmentTask]) -> list[SegmentReport]:
    return list(ResumingEngine(engine, ledger).check_segments(asked, STORE, LAYOUT))


def test_a_segment_is_read_again_only_where_it_changed_or_could_not_be_read(ledger: Ledger) -> None:
    first_segment, _, third_segment = (task.metadata for task in tasks())
    failed = part_finding(FindingCode.UNREADABLE, third_segment, {}, Part.LOG, "the store went away")
    damaged_log = part_finding(FindingCode.BATCH_CORRUPT, first_segment, {}, Part.LOG, "CRC", position=3)
    first, second, third = Scripted(at_0=damaged_log, at_20=failed), Scripted(), Scripted()

    before = resumed(ledger, first, tasks())
    after = resumed(ledger, second, tasks(author=2))
    again = resumed(ledger, third, tasks(author=2))

    ids = [task.metadata.segment_id for task in tasks()]
    assert first.read == ids
    assert second.read == ids[1:]
    assert third.read == []
    assert before[0] == after[0] == again[0]
    assert before[0].findings == (damaged_log,)
    assert after[2].findings == again[2].findings == ()


def test_another_level_or_store_is_another_question(ledger: Ledger) -> None:
    resumed(ledger, Scripted(), tasks(Level.HEADERS))
    deeper, elsewhere = Scripted(), Scripted()

    resumed(ledger, deeper, tasks())
    list(ResumingEngine(elsewhere, ledger).check_segments(tasks(), FileStore("/"), LAYOUT))

    assert len(deeper.read) == len(elsewhere.read) == 3


def test_what_was_read_before_a_failure_is_kept(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieredctl_spark.ledger._SECONDS_BETWEEN_ENTRIES", 0.0)
    reports = ResumingEngine(Scripted(), ledger).check_segments(tasks(), STORE, LAYOUT)
    next(reports)
    next(reports)
    reports.close()  # type: ignore[attr-defined]
    engine = Scripted()

    resumed(ledger, engine, tasks())

    assert engine.read == [tasks()[2].metadata.segment_id]


def test_another_metadata_manager_is_refused_by_its_name(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for path in (captures / "kafka-4.3.1/data").iterdir():
        (data / path.name).symlink_to(path)
    (tmp_path / "server.properties").write_text("remote.log.metadata.manager.class.name=com.example.Manager\n")
    store = f"file:{captures / 'kafka-4.3.1' / REMOTE}"

    code = job.main(["--log-dir", str(data), "--store", store, "--layout", "local", "--output", str(tmp_path / "out")])

    assert code == ExitCode.USAGE
    assert "com.example.Manager, which does not keep its metadata in __remote_log_metadata" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_job_finds_what_the_command_finds_and_reads_in_the_same_order(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    cluster, output = damaged(captures / "kafka-4.3.1", tmp_path), tmp_path / "output"
    where = ["--log-dir", str(cluster / "data"), "--store", f"file:{cluster / REMOTE}", "--layout", "local"]
    level = ["--level", "listing"]

    command = read_in_order(COMMAND_LINE, cluster, tmp_path / "1", ["verify", *where, *level, "-o", "json"])
    job_done = read_in_order(SPARK_JOB, cluster, tmp_path / "2", [*where, *level, "--output", str(output)])

    told = json.loads(command.printed)["items"]
    findings = [read_finding(row).document() for row in pq.read_table(output / "findings").to_pylist()]
    assert command.order == job_done.order == [STORE_LISTED, LOCAL_LOGS, METADATA, STORE_LISTED, METADATA]
    assert command.exit_code == job_done.exit_code == ExitCode.CORRUPTION
    assert [(one["code"], one["subject"], one["message"]) for one in findings] == [
        (one["code"], one["subject"], one["message"]) for one in told
    ]

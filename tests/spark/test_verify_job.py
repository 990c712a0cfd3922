"""The job for spark-submit: its results, its exit codes, and how it resumes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.jobs import verify as job

from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tests.rigs.small_spark import SMALL, conf_words
from tests.spark.cluster.submitted_jobs import DRIVER_CREDENTIALS
from tests.spark.damage import REMOTE, damaged, with_unknown_size
from tests.wiring.reading_order import COMMAND_LINE, LOCAL_LOGS, METADATA, SPARK_JOB, STORE_LISTED, read_in_order
from tieredctl.cli.main import run as run_command
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.local_logs import read_local_logs
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.verify import verify
from tieredctl.storage.file import FileStore

pytestmark = pytest.mark.spark

SPARK_SUBMIT = (f"{Path(pyspark.__file__).parent}/bin/spark-submit", "--master", "local[2]", *conf_words(SMALL))
LAYOUT = layout_named("local")


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

    done = subprocess.run(
        [*SPARK_SUBMIT, job.__file__, *arguments(cluster, output), "--metrics-file", str(tmp_path / "metrics.prom")],
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
    counts, run = summary["summary"], summary["summary"]["run"]
    findings = pq.read_table(output / f"findings/run={run}", partitioning=None).to_pylist()
    assert half == ExitCode.CORRUPTION
    assert done.returncode == ExitCode.CORRUPTION, done.stderr
    assert "\tat " not in done.stderr
    assert 0 < counts["resumed"] < first["segments"] < local.segments  # what was damaged is read again
    assert first["resumed"] == 0
    assert counts == local.summary() | {
        "resumed": counts["resumed"],
        "postponed": 0,
        "run": run,
        "exitCode": ExitCode.CORRUPTION,
    }
    assert spark.read.json(str(output / "summaries")).where(f"run = '{run}'").count() == 1
    assert [read_finding(row) for row in findings] == local.findings
    assert {folder.name for folder in (output / "findings").iterdir()} == {f"run={first['run']}", f"run={run}"}
    metrics = (tmp_path / "metrics.prom").read_text()
    assert f'tieredctl_segments{{command="verify"}} {local.segments}\n' in metrics


def test_coverage_says_by_topic_what_is_not_known_to_be_sound(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(kafka_4, tmp_path / "output")
    job.main([*words, "--subset", "1/2"])
    read = json.loads(capsys.readouterr().out)["summary"]

    for age in ("30d", "999999999999999999d"):
        code = job.main([*words, "--coverage", "--max-age", age])

        half = json.loads(capsys.readouterr().out)
        counts, topics = half["summary"], half["items"]
        assert code == ExitCode.CLEAN, age
        assert counts["segments"] == counts["bytesRead"] == 0, age
        assert counts["segmentsKnown"] - counts["segmentsNotVerified"] == read["segments"] > 0, age
        unverified = sum(topic["segmentsNotVerified"] for topic in topics)
        assert counts["segmentsNeverRead"] == counts["segmentsNotVerified"] == unverified, age
        assert 0 < counts["bytesNotVerified"] == sum(topic["bytesNotVerified"] for topic in topics), age

    job.main([*words, "--coverage", "--max-age", "0s"])
    none = json.loads(capsys.readouterr().out)["summary"]
    assert none["segmentsNotVerified"] == counts["segmentsKnown"]
    assert none["segmentsNeverRead"] == counts["segmentsNeverRead"]


def test_a_budget_that_leaves_segments_unread_makes_the_answer_incomplete(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = job.main([*arguments(kafka_4, tmp_path), "--max-bytes", "1MiB"])

    counts = json.loads(capsys.readouterr().out)["summary"]
    assert (code, counts["exitCode"], counts["complete"]) == (ExitCode.INCOMPLETE, ExitCode.INCOMPLETE, False)
    assert counts["segments"] > 0 < counts["postponed"]


@pytest.mark.integration
def test_the_ledger_may_be_in_a_bucket(
    spark: SparkSession,
    kafka_4: Path,
    tmp_path: Path,
    versitygw: ObjectServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in DRIVER_CREDENTIALS.items():  # Java began without them
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    options = S3Bucket(versitygw.endpoint).options
    ledger = [word for name, value in options.items() for word in ("--tables-option", f"{name}={value}")]
    words = [*arguments(kafka_4, tmp_path), "--subset", "1/4", "--tables", f"s3://{BUCKET}/tables", *ledger]

    codes = [job.main(words) for _ in range(2)]

    said = capsys.readouterr()
    assert codes == [ExitCode.CLEAN] * 2, said.err
    first, second = (json.loads(line)["summary"] for line in said.out.splitlines())
    assert (first["resumed"], second["resumed"]) == (0, first["segments"])
    assert not (tmp_path / "ledger").exists()


def test_coverage_has_no_sum_of_a_topic_with_a_segment_of_unknown_size(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(with_unknown_size(kafka_4, tmp_path), tmp_path / "output")

    code = job.main([*words, "--coverage", "--max-age", "30d"])
    document = json.loads(capsys.readouterr().out)

    assert code == ExitCode.FINDINGS
    assert [topic["bytes"] for topic in document["items"]].count(None) == 1
    assert all(topic["bytes"] is None or topic["bytes"] > 0 for topic in document["items"])
    assert document["summary"]["bytesNotVerified"] is None


def test_results_are_written_before_the_ledger_is_closed(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TieredctlError(ErrorCode.SPARK_FAILED, "Files cannot be put together.")

    monkeypatch.setattr("tieredctl_spark.ledger_rows.FolderRows.close", fail)

    code = job.main([*arguments(kafka_4, tmp_path), "--subset", "1/20"])

    assert code == ExitCode.FAILURE
    assert len(list((tmp_path / "findings").iterdir())) == len(list((tmp_path / "summaries").iterdir())) == 1
    assert not any(path for name in ("tasks", "work") for path in (tmp_path / name).iterdir())


def test_a_topic_alone_is_read_in_the_layout_that_is_found(
    spark: SparkSession, kafka_4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{kafka_4 / REMOTE}", "--level", "headers"]
    chosen = ["--topic", "orders7", "--partition", "1"]

    code = job.main([*where, *chosen, "--output", str(tmp_path)])

    said = json.loads(capsys.readouterr().out)
    assert run_command(["verify", *where, *chosen, "-o", "json"]) == code
    command = json.loads(capsys.readouterr().out)
    assert said["source"]["layout"] == "local"
    same = said["summary"].keys() & command["summary"].keys()
    assert same >= {"segments", "objects", "selection", "selectedOnly"}
    assert {name: said["summary"][name] for name in same} == {name: command["summary"][name] for name in same}
    assert not [*tmp_path.glob("tasks/*"), *tmp_path.glob("work/*")]
    assert job.main([*where, "--topic", "order7", "--output", str(tmp_path)]) == ExitCode.USAGE
    assert "knows topic order7" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_spark_submit_keeps_sentences_on_stderr(captures: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*SPARK_SUBMIT, job.__file__, *arguments(captures / "kafka-4.3.1", tmp_path), "--subset", "9/3"],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert "'9/3' is not a subset.\n  Write it as 3/30 or 5%.\n" in done.stderr


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
        (["--max-age", "soon"], ExitCode.USAGE),
        (["--max-bytes", "many"], ExitCode.USAGE),
        (["--max-bytes", "0"], ExitCode.USAGE),
        (["--read-rate", "0MB"], ExitCode.USAGE),
    ],
)
def test_wrong_use_is_reported_in_a_sentence(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str], code: ExitCode
) -> None:
    assert job.main([*arguments(captures / "kafka-4.3.1", tmp_path), *wrong]) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 2


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


@pytest.mark.exhaustive
def test_the_job_finds_what_the_command_finds_and_reads_in_the_same_order(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    cluster, output = damaged(captures / "kafka-4.3.1", tmp_path), tmp_path / "output"
    where = ["--log-dir", str(cluster / "data"), "--store", f"file:{cluster / REMOTE}", "--layout", "local"]
    level = ["--level", "listing"]

    command = read_in_order(COMMAND_LINE, cluster, tmp_path / "1", ["verify", *where, *level, "-o", "json"])
    job_done = read_in_order(SPARK_JOB, cluster, tmp_path / "2", [*where, *level, "--output", str(output)])

    told = json.loads(command.printed)["items"]
    (run,) = (output / "findings").iterdir()
    findings = [read_finding(row).document() for row in pq.read_table(run, partitioning=None).to_pylist()]
    assert command.order == job_done.order == [STORE_LISTED, LOCAL_LOGS, METADATA, STORE_LISTED, METADATA]
    assert command.exit_code == job_done.exit_code == ExitCode.CORRUPTION
    assert [(one["code"], one["subject"], one["message"]) for one in findings] == [
        (one["code"], one["subject"], one["message"]) for one in told
    ]

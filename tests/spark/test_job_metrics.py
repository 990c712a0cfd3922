"""`--metrics-file` of a job: however it ends, its exit code stands there, and figures of that run alone."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tieredctl_spark.job_arguments import job_parser, run_job
from tieredctl_spark.jobs import verify as job

from tests.cli.openmetrics import read_metrics
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError

pytestmark = pytest.mark.spark

Run = Callable[[argparse.Namespace], ExitCode]
NEEDED = ["--store", "memory:", "--layout", "local", "--output", "out"]


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    """Of a run of yesterday, which found nothing."""
    file = tmp_path / "metrics.prom"
    file.write_text(
        "# HELP tieredctl_exit_code How the last run ended.\n"
        'tieredctl_exit_code{command="verify"} 0\ntieredctl_segments{command="verify"} 7\n'
    )
    return file


def written(metrics: Path) -> dict[str, float]:
    """The samples, without the time of the run."""
    samples = read_metrics(metrics.read_text())
    assert {dict(sample.labels)["command"] for sample in samples} == {"verify"}
    return {sample.family: sample.value for sample in samples if "timestamp" not in sample.family}


def raising(error: BaseException, _options: argparse.Namespace) -> ExitCode:
    raise error


def stopped_by(number: signal.Signals, _options: argparse.Namespace) -> ExitCode:
    signal.raise_signal(number)
    time.sleep(60)
    return ExitCode.CLEAN


def run(how: Run, *words: str) -> int:
    return run_job(job_parser("verify.py", "A job."), how, [*NEEDED, *words])


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (lambda _: ExitCode.CORRUPTION, ExitCode.CORRUPTION),
        (partial(raising, TieredctlError(ErrorCode.METADATA_INCOMPLETE, "It lacks some.")), ExitCode.INCOMPLETE),
        (partial(raising, TieredctlError(ErrorCode.SPARK_FAILED, "It failed.")), ExitCode.FAILURE),
        (partial(raising, OSError(28, "No space left on device", "out")), ExitCode.FAILURE),
        (partial(raising, MemoryError()), ExitCode.FAILURE),
        (partial(raising, ZeroDivisionError()), ExitCode.FAILURE),
        (partial(raising, KeyboardInterrupt()), ExitCode.INTERRUPTED),
        (partial(stopped_by, signal.SIGTERM), ExitCode.INTERRUPTED),
        (partial(stopped_by, signal.SIGHUP), ExitCode.INTERRUPTED),
    ],
)
def test_in_trouble_of_any_kind_both_exit_codes_are_the_same(how: Run, code: ExitCode, metrics: Path) -> None:
    assert run(how, "--metrics-file", str(metrics)) == code

    assert written(metrics) == {"tieredctl_exit_code": code}


def test_metrics_that_cannot_be_written_are_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(lambda _: ExitCode.CLEAN, "--metrics-file", str(tmp_path / "nowhere" / "metrics.prom"))

    assert code == ExitCode.FAILURE
    assert "nowhere" in capsys.readouterr().err


def test_signals_are_handled_as_before_once_the_job_has_ended() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [*map(signal.getsignal, numbers)]

    run(lambda _: ExitCode.CLEAN)

    assert [*map(signal.getsignal, numbers)] == before


def test_a_store_that_is_not_there_replaces_the_figures_of_yesterday(captures: Path, metrics: Path) -> None:
    data = captures / "kafka-4.3.1" / "data"
    where = ["--log-dir", str(data), "--store", f"file:{metrics.parent}/nowhere", "--layout", "local"]

    code = job.main([*where, "--output", str(metrics.parent / "out"), "--metrics-file", str(metrics)])

    assert code == ExitCode.USAGE
    assert written(metrics) == {"tieredctl_exit_code": ExitCode.USAGE}


def test_a_file_that_cannot_be_written_is_said_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "no-such-folder/metrics.prom"

    code = run(partial(raising, AssertionError("it worked")), "--metrics-file", str(file))

    assert code == ExitCode.FAILURE
    assert capsys.readouterr().err.startswith(f"{file} cannot be written: No such file or directory.\n")

"""How a job says what went wrong: a sentence and a hint, and all that a report needs if nobody foresaw it."""

from __future__ import annotations

import argparse

import pytest
from tieredctl_spark.job_arguments import job_parser, run_job

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError

pytestmark = pytest.mark.spark

SECRET = "correct-horse-battery"
NEEDED = ["--store", "memory:", "--store-option", f"secret-key={SECRET}", "--layout", "local", "--output", "out"]


def run(failure: Exception) -> int:
    def fail(_: argparse.Namespace) -> ExitCode:
        raise failure

    return run_job(job_parser("verify.py", "A job."), fail, NEEDED)


def test_what_is_unforeseen_leaves_in_the_log_all_that_a_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(ZeroDivisionError("by what?"))

    *lines, sentence, hint = capsys.readouterr().err.splitlines()
    assert code == ExitCode.FAILURE
    assert "has a fault at " in sentence
    assert sentence.endswith("ZeroDivisionError('by what?').")
    assert hint == "  Please report it with the lines above, which have no secrets."
    assert "Traceback (most recent call last):" in lines
    assert any(line.startswith("command   verify.py --store memory: ") for line in lines)


def test_no_secret_is_left_in_the_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    run(ZeroDivisionError(f"not by {SECRET}"))

    assert SECRET not in capsys.readouterr().err


def test_a_name_that_would_move_the_cursor_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    run(TieredctlError(ErrorCode.UNREADABLE, "\x1b[2Jkey is unreadable", hint=""))

    assert capsys.readouterr().err == "\\x1b[2Jkey is unreadable.\n"


def test_an_error_of_the_system_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(FileNotFoundError(2, "No such file or directory", "client.properties"))

    assert code == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("There is no client.properties.\n  ")

"""Runs tieredctl: in the test's own process, or in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tieredctl.cli.main import run

REPOSITORY = Path(__file__).parents[2]
SECONDS = 300
"""Long enough for a busy machine; what takes longer hangs."""


class Outcome(NamedTuple):
    """What a command line left: exit code, stdout, stderr."""

    exit_code: int
    out: str
    err: str

    def document(self) -> dict[str, Any]:
        """The document of `-o json`."""
        assert self.out, (self.exit_code, self.err)
        document: dict[str, Any] = json.loads(self.out)
        return document

    def lines(self) -> list[dict[str, Any]]:
        """The items of `-o jsonl`."""
        return [json.loads(line) for line in self.out.splitlines()]

    def finding(self, exit_code: int = 3) -> dict[str, Any]:
        """The one finding among the items of `-o json`."""
        (finding,) = self.document()["items"]
        assert self.exit_code == exit_code
        return dict(finding)


Tieredctl = Callable[..., Outcome]
"""`tieredctl("metadata", "segments", "--log-dir", path)` and so on."""


@pytest.fixture
def tieredctl(capsys: pytest.CaptureFixture[str]) -> Tieredctl:
    """Runs tieredctl in the test's own process."""

    def run_words(*words: str | Path) -> Outcome:
        exit_code = run([str(word) for word in words])
        return Outcome(exit_code, *capsys.readouterr())

    return run_words


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what would change the command line's, and with some variables."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    return kept | {"PYTHONPATH": str(REPOSITORY)} | variables


def this_process(*words: str | Path) -> Outcome:
    """Runs tieredctl in the test's own process, for fixtures of any scope and conditions that are awaited."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        exit_code = run([str(word) for word in words])
    return Outcome(exit_code, *(text.buffer.getvalue().decode() for text in (out, err)))


def own_process(*words: str | Path, **variables: str) -> Outcome:
    """Runs tieredctl in a process of its own."""
    command = [sys.executable, "-m", "tieredctl", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(**variables), timeout=SECONDS, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)

"""The command line as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tieredctl.cli.main import run


@pytest.fixture
def tieredctl(capsys: pytest.CaptureFixture[str]) -> Tieredctl:
    """Runs tieredctl in the test's own process."""

    def run_words(*words: str | Path) -> Outcome:
        exit_code = run([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(exit_code, captured.out, captured.err)

    return run_words

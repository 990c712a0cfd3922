"""A coordinator's process is killed, and its state is what the log says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.divided  # by the process that it starts
def test_killed_at_every_statement_in_turn_it_recovers_to_what_the_log_says(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.coordinator.killed", str(tmp_path)]

    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert outcome.returncode == 0, outcome.stderr
    assert int(outcome.stdout) > 100

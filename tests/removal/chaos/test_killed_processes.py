"""The same as `test_killed_removals.py`, with processes of the real command, killed by their parent.

`TIEREDCTL_CHAOS_PROCESSES` says how many seeds are tried.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.removal.chaos.processes import try_processes
from tests.removal.chaos.workers import failures_of
from tests.shares import divided

SEEDS = int(os.environ.get("TIEREDCTL_CHAOS_PROCESSES", "30"))


def test_processes_killed_wherever_they_touch_a_file(folder: Path) -> None:
    failures = failures_of(divided(range(SEEDS)), try_processes, folder)
    assert not failures, "\n".join(failures)

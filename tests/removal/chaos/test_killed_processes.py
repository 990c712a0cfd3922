"""The same as `test_killed_removals.py`, with processes of the real command, killed by their parent.

`TIEREDCTL_CHAOS_PROCESSES` says how many seeds are tried.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.removal.chaos.azure_trial import AzureTrial
from tests.removal.chaos.processes import try_processes
from tests.removal.chaos.workers import failures_of
from tests.rigs.object_servers import ObjectServer
from tests.shares import divided

SEEDS = int(os.environ.get("TIEREDCTL_CHAOS_PROCESSES", "30"))
SEEDS_FOR_ONE_ON_AZURITE = 2


def test_processes_killed_wherever_they_touch_a_file(folder: Path) -> None:
    failures = failures_of(divided(range(SEEDS)), try_processes, folder)
    assert not failures, "\n".join(failures)


@pytest.mark.integration
def test_processes_killed_wherever_they_touch_a_file_or_azurite(folder: Path, azurite: ObjectServer) -> None:
    attempt = partial(try_processes, trial_of=partial(AzureTrial, endpoint=azurite.endpoint))

    failures = failures_of(divided(range(SEEDS // SEEDS_FOR_ONE_ON_AZURITE)), attempt, folder)

    assert not failures, "\n".join(failures)

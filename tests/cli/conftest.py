"""The command line as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import AGED, CAPTURE, ENOUGH, CrashedClusterOnDisk, crashed_cluster_on_disk
from tieredctl.cli.main import run


@pytest.fixture
def tieredctl(capsys: pytest.CaptureFixture[str]) -> Tieredctl:
    """Runs tieredctl in the test's own process."""

    def run_words(*words: str | Path) -> Outcome:
        exit_code = run([str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(exit_code, captured.out, captured.err)

    return run_words


@pytest.fixture
def cluster(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> CrashedClusterOnDisk:
    """A crashed cluster whose store may be changed."""
    return crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)


@pytest.fixture
def planned(cluster: CrashedClusterOnDisk) -> CrashedClusterOnDisk:
    """The same, with a plan that has not been used."""
    assert cluster.plan(*AGED, *ENOUGH).exit_code == 0
    return cluster

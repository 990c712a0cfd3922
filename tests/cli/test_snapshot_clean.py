"""`snapshot clean`, also of real brokers' directories: while one runs, nothing of it goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.errors import ExitCode

FOLDER = "__cluster_metadata-0"
LIMITS = ("--metadata-max-retention-ms", "1", "--metadata-max-retention-bytes", "-1")


@pytest.mark.integration
def test_a_running_broker_is_not_cleaned(driven: DrivenBroker, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("snapshot", "clean", driven.broker.log_dir)

    assert outcome.exit_code == ExitCode.LOCKED


@pytest.fixture
def copy(captures: Path, tmp_path: Path) -> Path:
    """Of a log directory, after a clean stop."""
    shutil.copytree(captures / "kafka-4.3.1/data", tmp_path / "data")
    return tmp_path / "data"


def test_without_apply_it_is_only_shown_in_every_format(tieredctl: Tieredctl, copy: Path) -> None:
    before = sorted((copy / FOLDER).iterdir())

    outcome = tieredctl("snapshot", "clean", copy, "--metadata-max-retention-bytes", "0")

    assert (outcome.exit_code, outcome.out.count(" remove ")) == (ExitCode.CLEAN, 2)
    for output in ("wide", "json", "jsonl", "csv", "yaml"):
        shown = tieredctl("snapshot", "clean", copy / FOLDER, "--metadata-max-retention-ms", "1", "-o", output)

        assert (shown.exit_code, shown.out.count(".checkpoint")) == (ExitCode.CLEAN, 3), output
    assert sorted((copy / FOLDER).iterdir()) == before


def test_nothing_goes_unconfirmed_or_by_wrong_use(tieredctl: Tieredctl, copy: Path) -> None:
    """Nor by limits that may not be the node's, or of a cluster without an id."""
    sure, limit = ("--apply", "--yes"), "--metadata-max-retention"
    for words in (
        (copy, *LIMITS, *sure),
        (copy, *LIMITS, *sure, "--cluster-id", "5lgVbV_vRSmEjoqjPWDZrA"),
        (copy, *LIMITS, "--apply"),
        (copy, f"{limit}-ms", "1", *sure),
        (copy, f"{limit}-ms", "-2"),
        (copy, f"{limit}-bytes", "1e9"),
        (copy, "--now", "yesterday"),
        ("nowhere",),
        ("/dev/null",),
        (".",),
        (),
    ):
        assert tieredctl("snapshot", "clean", *words).exit_code == ExitCode.USAGE, words
    (copy / "meta.properties").unlink()
    assert tieredctl("snapshot", "clean", copy, *LIMITS, *sure).exit_code != ExitCode.CLEAN
    assert len(list((copy / FOLDER).glob("*.checkpoint"))) == 3

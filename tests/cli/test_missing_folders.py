"""Folders that every process is thought to have: one for temporary files, and the current one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl


def test_nowhere_to_put_temporary_files_is_said_and_is_no_wrong_usage(
    tieredctl: Tieredctl, captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose file system is read-only."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    cluster = captures / "kafka-4.3.1"
    store = f"file:{cluster}/remote/kafka-tiered-storage"

    outcome = tieredctl("orphans", "scan", "--log-dir", cluster / "data", "--store", store)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err == (
        "tieredctl: There is no folder for temporary files.\n  Name a folder that may be written to with TMPDIR.\n"
    )


def test_a_current_folder_that_is_gone_is_said(
    tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    outcome = tieredctl("remote", "ls", "--store", "file:store")

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("tieredctl: The current folder no longer exists.\n")

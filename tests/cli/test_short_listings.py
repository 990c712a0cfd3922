"""A listing that lacks a part of what a store has for long: what is counted by it is not all, and that is said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import LISTED, CrashedClusterOnDisk
from tieredctl.errors import ExitCode
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore

AGED = ("--min-age", "1h", "-o", "json")


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> str:
    """What listings lack: the manifests of segments."""
    list_all = FileStore.list

    def listing(self: FileStore, *words: str, **named: str) -> Iterator[StoredObject]:
        return (one for one in list_all(self, *words, **named) if not one.key.endswith(".rsm-manifest"))

    monkeypatch.setattr(FileStore, "list", listing)
    return ".rsm-manifest"


def test_a_scan_by_a_listing_that_lacks_promised_objects_is_not_complete(
    cluster: CrashedClusterOnDisk, lacking: str
) -> None:
    outcome = cluster.scan(*AGED)

    summary = outcome.document()["summary"]
    found = [one for one in summary["findings"] if one["code"] == "unreadable"]
    assert summary["objects"] < LISTED
    assert [one["evidence"]["key"].endswith(lacking) for one in found] == [True]
    assert (outcome.exit_code, summary["complete"]) == (ExitCode.INCOMPLETE, False)


def test_what_was_written_meanwhile_may_lack_in_a_listing(cluster: CrashedClusterOnDisk, lacking: str) -> None:
    for path in cluster.bucket.rglob(f"*{lacking}"):
        os.utime(path)

    summary = cluster.scan(*AGED).document()["summary"]

    assert not [one for one in summary["findings"] if one["code"] == "unreadable"]


def test_a_listing_that_another_run_began_may_be_older_than_objects(
    cluster: CrashedClusterOnDisk, lacking: str, tmp_path: Path
) -> None:
    summary = cluster.scan(*AGED, "--resume", tmp_path / "checkpoint").document()["summary"]

    assert not [one for one in summary["findings"] if one["code"] == "unreadable"]

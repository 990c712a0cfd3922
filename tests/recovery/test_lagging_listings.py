"""Recoveries of metadata from a store whose listing is older than its objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore


def test_no_offsets_are_missing_that_are_in_a_segment_which_a_listing_lacks(
    captures: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = captures / "kafka-4.3.1"
    at = ["--log-dir", cluster / "data", "--store", f"file:{cluster / 'remote/kafka-tiered-storage'}"]
    listed = FileStore.list

    def lagging(store: FileStore, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return (one for one in listed(store, prefix, start_after) if "/00000000000000000126-" not in one.key)

    monkeypatch.setattr(FileStore, "list", lagging)

    done = tieredctl("recover", "metadata", *at, "--topic", "slow7", "-o", "json")

    assert (done.exit_code, done.document()["summary"]["inMetadata"]) == (0, 2)

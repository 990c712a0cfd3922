"""Logs in the store that are shorter than the set's events promise: a restore names them."""

from __future__ import annotations

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.cli.command_line import Tieredctl
from tieredctl.errors import ExitCode
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore


def test_a_segment_that_comes_back_with_a_shortened_log_is_named(
    sets: CapturedSets, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tieredctl("restore", "plan", *sets.words("1"), "-o", "json").document()
    log = min(sets.store.rglob("*orders7-0*/*.log"), key=lambda path: path.name)
    head, size = FileStore.head, log.stat().st_size
    log.write_bytes(log.read_bytes()[:-9])

    planned = tieredctl("restore", "plan", *sets.words("1"), "-o", "json")

    there = planned.document()
    (found,) = [one for one in there["summary"]["findings"] if one not in whole["summary"]["findings"]]
    assert (found["code"], found["evidence"]["position"]) == ("size-mismatch", size - 9)
    assert found["evidence"]["segmentId"] in log.name
    assert (planned.exit_code, there["items"]) == (ExitCode.CORRUPTION, whole["items"])

    # The listing alone said so.
    def as_it_was(store: FileStore, key: str) -> StoredObject | None:
        stored = head(store, key)
        return stored and stored._replace(size=size) if key.endswith(log.name) else stored

    monkeypatch.setattr(FileStore, "head", as_it_was)
    listed = tieredctl("restore", "plan", *sets.words("1"), "-o", "json").document()
    assert listed["summary"]["findings"] == whole["summary"]["findings"]

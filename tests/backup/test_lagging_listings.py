"""Restores from a store whose listing is older than its objects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.cli.command_line import Tieredctl
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore


@pytest.mark.parametrize("unlisted", ["slow7-0-", "/00000000000000000126-", "-GO1yWZckTOapkLtIH_MiCg.log"])
def test_a_promised_segment_that_a_listing_lacks_is_not_lost_and_its_offsets_are_not_given_again(
    sets: CapturedSets, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, unlisted: str
) -> None:
    words = ["restore", "plan", *sets.words("1"), "-o", "json"]
    listed = FileStore.list

    def lagging(store: FileStore, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return (one for one in listed(store, prefix, start_after) if unlisted not in one.key)

    before = tieredctl(*words).document()
    monkeypatch.setattr(FileStore, "list", lagging)

    after = tieredctl(*words).document()

    assert after["items"] == before["items"]
    assert after["summary"] == before["summary"]

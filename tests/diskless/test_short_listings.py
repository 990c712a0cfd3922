"""A listing that lacks an object which the bucket had for long is not all: who counts by it says so."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import Inkless
from tieredctl.errors import ExitCode
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore

DAY_SECONDS = 86_400


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("words", [("orphans", "scan"), ("status",)], ids=" ".join)
def test_what_is_counted_by_it_is_not_complete_where_it_lacks_what_was_there_before(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], is_old: bool
) -> None:
    before = tieredctl("diskless", *words, *tidy.places, "-o", "json")
    lacking, list_all = {path.name: path for path in tidy.bucket.rglob("*") if path.is_file()}, FileStore.list
    lacking.pop(min(lacking))
    for path in lacking.values():
        moment = path.stat().st_mtime - DAY_SECONDS if is_old else None
        os.utime(path, None if moment is None else (moment, moment))

    def listed(store: FileStore, *words: str, **named: str) -> Iterator[StoredObject]:
        return (one for one in list_all(store, *words, **named) if one.key.rpartition("/")[2] not in lacking)

    monkeypatch.setattr(FileStore, "list", listed)

    outcome = tieredctl("diskless", *words, *tidy.places, "-o", "json")

    document = outcome.document()
    found = [one["evidence"] for one in document["summary"]["findings"] if one["code"] == "unreadable"]
    assert document["summary"]["objects"] == before.document()["summary"]["objects"] - len(lacking)
    assert outcome.exit_code == (ExitCode.INCOMPLETE if is_old else before.exit_code)
    assert [0 < one["objects"] <= len(lacking) for one in found] == [True] * is_old

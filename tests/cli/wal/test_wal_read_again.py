"""What a store says once of a combined object, and not a second time, makes nothing of it damaged."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import objects
from tests.rigs.lies import half, zeros
from tieredctl.storage.file import FileStore
from tieredctl.storage.refusals import object_missing


def gone(_: bytes) -> bytes:
    raise object_missing("file:/", "an object")


@pytest.mark.parametrize("change", [half, zeros, gone])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_one_answer_alone_damages_no_object(
    uploaded: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[bytes], bytes],
    number: int,
) -> None:
    read, times, name = FileStore.read, count(1), objects(uploaded)[0].name

    def altered_once(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(store, key, start, end)
        return change(data) if key.endswith(name) and next(times) == number else data

    monkeypatch.setattr(FileStore, "read", altered_once)

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", "full", "-o", "json")

    assert next(times) > number
    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])

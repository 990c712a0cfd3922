"""What a store says once of a combined object, and not a second time, makes nothing of it damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import objects
from tests.rigs.lies import half, zeros
from tieredctl.ports.object_store import StoredObject
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


def listed_as(monkeypatch: pytest.MonkeyPatch, change: Callable[[StoredObject], list[StoredObject]]) -> None:
    """Listings have objects of the WAL as `change` makes them."""
    list_all = FileStore.list

    def listing(self: FileStore, *words: str, **named: str) -> Iterator[StoredObject]:
        for stored in list_all(self, *words, **named):
            yield from change(stored) if stored.key.endswith(".wal") else [stored]

    monkeypatch.setattr(FileStore, "list", listing)


LISTINGS: dict[str, Callable[[StoredObject], list[StoredObject]]] = {
    "lacks": lambda _stored: [],
    "has shorter": lambda stored: [stored._replace(size=1)],
}


@pytest.mark.parametrize("level", ["listing", "full"])
@pytest.mark.parametrize("what", LISTINGS)
def test_what_a_listing_lacks_or_has_in_another_size_is_asked_for_twice_by_name(
    what: str, level: str, uploaded: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed_as(monkeypatch, LISTINGS[what])
    head, denied = FileStore.head, set[str]()

    def denied_once(store: FileStore, key: str) -> StoredObject | None:
        if key in denied:
            return head(store, key)
        denied.add(key)
        return None

    monkeypatch.setattr(FileStore, "head", denied_once)

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", level, "-o", "json")

    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])
    assert (outcome.document()["summary"]["bytesRead"] > 0) is (level == "full")
    assert denied >= {path.name for path in objects(uploaded)}


def test_one_denial_alone_does_not_have_the_object_of_a_record_missing(
    uploaded: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, times = FileStore.read, count()

    def denied_once(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        return gone(b"") if key.endswith(".wal") and not next(times) else read(store, key, start, end)

    monkeypatch.setattr(FileStore, "read", denied_once)

    outcome = tieredctl("wal", "explain", "orders:0@5", "--store", f"file:{uploaded}", "-o", "json")

    assert (outcome.exit_code, next(times) > 1) == (0, True), outcome.out


def test_an_object_that_is_gone_when_it_is_read_is_missing_and_not_unreadable(
    uploaded: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, name = FileStore.read, objects(uploaded)[0].name

    def without_one(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        return gone(b"") if key.endswith(name) else read(store, key, start, end)

    monkeypatch.setattr(FileStore, "read", without_one)

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "-o", "json")

    assert outcome.finding(4)["code"] == "wal-object-missing"

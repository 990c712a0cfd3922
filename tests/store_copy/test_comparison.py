"""Two stores compared: `= - + * !`, by size, checksum or content."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.store_copy.copies import store_of
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.store_copy.comparison import By, StoreComparison
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.counting import CountingStore
from tieredctl.storage.memory import MemoryStore

SOURCE = {"a": b"1", "b": b"22", "c": b"333", "e": b"5"}
DESTINATION = {"a": b"1", "b": b"2", "c": b"334", "d": b"4"}


class Telling(MemoryStore):
    """A store that keeps these checksums."""

    def __init__(self, checksums: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__()
        self._checksums = checksums

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        return self._checksums.get(stored.key, {})


class Unreadable(MemoryStore):
    """A store that lists what it does not let be read, for one reason or another."""

    code = ErrorCode.STORE_FORBIDDEN

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if key == "a":
            raise TieredctlError(self.code, "no")
        return super().read(key, start, end)


class Replaced(MemoryStore):
    """A store whose objects are replaced while they are read."""

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        self.put(key, data)
        return data


def marks(source: ObjectStore, destination: ObjectStore, by: By) -> str:
    comparison = StoreComparison(source, destination, by)
    rows = [row for _, row in comparison.compared()]
    assert [row.key for row in rows] == sorted(row.key for row in rows)
    assert sum(comparison.counts.values()) == len(rows)
    return "".join(row.mark for row in rows)


def test_each_key_of_either_store_has_one_mark() -> None:
    source, destination = store_of(SOURCE), store_of(DESTINATION)

    assert marks(source, destination, By.SIZE) == "=*=-+"
    assert marks(source, destination, By.CHECKSUM) == "=**-+"
    assert marks(source, destination, By.CONTENT) == "=**-+"


def test_stores_are_the_same_or_one_is_empty() -> None:
    filled, empty = store_of(SOURCE), MemoryStore()

    assert [marks(*pair, By.CONTENT) for pair in ((filled, filled), (filled, empty), (empty, filled))] == [
        "====",
        "++++",
        "----",
    ]
    assert (StoreComparison(empty, empty, By.SIZE).exit_code(), marks(empty, empty, By.SIZE)) == (0, "")


def test_an_exit_code_says_whether_they_differ_and_whether_all_was_compared() -> None:
    for source, destination, code in (
        (store_of(SOURCE), store_of(SOURCE), 0),
        (store_of(SOURCE), store_of(DESTINATION), 3),
        (store_of(SOURCE, Unreadable()), store_of(DESTINATION), 5),
    ):
        comparison = StoreComparison(source, destination, By.CONTENT)
        list(comparison.compared())

        assert comparison.exit_code() == code


def test_names_of_any_kind_are_joined_in_the_order_of_their_code_points() -> None:
    names = ["a/b", "a b", "A", "é", "\U0001f600", "\uffff", "\udcff", "a/", "~", "a\n", "=1+1"]
    both = store_of(dict.fromkeys(names, b"1"))
    other = store_of(dict.fromkeys(names[::2], b"1"))

    comparison = StoreComparison(both, other, By.SIZE)
    found = {row.key: row.mark for _, row in comparison.compared()}

    assert found == {name: "=" if name in names[::2] else "+" for name in names}


def test_tieredctls_own_objects_are_left_out() -> None:
    own = {".tieredctl/lease.json": b"1", "a/.tieredctl-unfinished-1": b"2", ".tieredctl-x": b"3"}

    assert marks(store_of(SOURCE | own), store_of(DESTINATION), By.SIZE) == "+=*=-+"


def test_a_checksum_that_both_keep_spares_reading() -> None:
    kept = {"a": {"md5": "1"}, "b": {"crc32c": "1"}}
    source, destination = (CountingStore(store_of({"a": b"1", "b": b"2"}, Telling(kept))) for _ in range(2))

    assert marks(source, destination, By.CHECKSUM) == "=="
    assert source.requests.keys() == destination.requests.keys() == {"list", "checksums"}


def test_checksums_of_parts_that_differ_prove_nothing_and_content_believes_none() -> None:
    source = store_of({"a": b"1", "b": b"2"}, Telling({"a": {"md5-of-parts": "1-2"}, "b": {"md5": "7"}}))
    destination = store_of({"a": b"1", "b": b"3"}, Telling({"a": {"md5-of-parts": "3-4"}, "b": {"md5": "7"}}))

    assert marks(source, destination, By.CHECKSUM) == "=="
    assert marks(source, destination, By.CONTENT) == "=*"


def test_what_cannot_be_read_or_changes_meanwhile_is_not_compared() -> None:
    whole = store_of({"a": b"1", "b": b"2"})

    assert marks(store_of({"a": b"1", "b": b"2"}, Unreadable()), whole, By.CONTENT) == "!="
    assert marks(store_of({"a": b"1", "b": b"3"}, Replaced()), whole, By.CONTENT) == "!!"
    assert marks(store_of({"a": b"1", "b": b"2"}, Unreadable()), whole, By.SIZE) == "=="


def test_a_store_that_stops_answering_ends_the_comparison() -> None:
    class Silent(Unreadable):
        code = ErrorCode.STORE_UNREACHABLE

    source = store_of({"a": b"1", "b": b"2"}, Silent())

    with pytest.raises(TieredctlError):
        marks(source, store_of({"a": b"1", "b": b"2"}), By.CONTENT)

"""Whether two objects hold the same bytes: what is believed of a store's checksums, and what is read."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.ops.guards.comparison import BYTES, demand_same, same_bytes
from tieredctl.storage.counting import CountingStore
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.protocol import ObjectStore, StoredObject


class Telling(MemoryStore):
    """A store that keeps these checksums."""

    def __init__(self, **checksums: Mapping[str, str]) -> None:
        super().__init__()
        self._checksums = checksums

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        return self._checksums.get(stored.key, {})


def how_same(store: ObjectStore, one: StoredObject, other: StoredObject) -> str:
    found = same_bytes(store, one, other)
    assert found is not None
    return found.by


DATA = b"0123456789" * 1_000_000
DIGEST = md5(DATA, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("name", ["crc32c", "md5", "md5-of-parts", "crc64nvme"])
def test_a_checksum_that_both_have_is_enough(name: str) -> None:
    store = Telling(a={name: "1", "sha1": "2"}, b={name: "1", "sha256": "3"})
    one, other = store.put("a", DATA), store.put("b", DATA)
    counting = CountingStore(store)

    assert how_same(counting, one, other) == name
    assert counting.requests == {"checksums": 2}


@pytest.mark.parametrize("name", ["md5", "md5-of-parts", "crc32c"])
def test_checksums_that_differ_prove_nothing(name: str) -> None:
    store = Telling(a={name: "1"}, b={name: "2"})

    assert how_same(store, store.put("a", DATA), store.put("b", DATA)) == BYTES


@pytest.mark.parametrize("told", ["a", "b"])
def test_where_the_store_knows_one_md5_only_the_other_object_is_read(told: str) -> None:
    store = Telling(**{told: {"md5": DIGEST}})
    one, other = store.put("a", DATA), store.put("b", DATA)
    counting = CountingStore(store)

    assert how_same(counting, one, other) == "md5-read"
    assert (counting.requests["stream"], counting.requests.get("read")) == (1, None)


@pytest.mark.parametrize("position", [0, 8 << 20, len(DATA) - 1])
@pytest.mark.parametrize("kept", [{}, {"md5": DIGEST}], ids=["no checksum", "an MD5"])
def test_one_byte_that_differs_is_found_wherever_it_is(position: int, kept: Mapping[str, str]) -> None:
    store = Telling(a=kept)
    altered = bytearray(DATA)
    altered[position] ^= 1

    assert same_bytes(store, store.put("a", DATA), store.put("b", bytes(altered))) is None


def test_what_was_written_while_it_was_read_is_not_the_same() -> None:
    store = MemoryStore()
    one, other = store.put("a", DATA), store.put("b", DATA)
    store.put("a", DATA)

    assert same_bytes(store, one, other) is None


def test_a_copy_that_differs_does_not_stay() -> None:
    store = MemoryStore()
    one, other = store.put("a", b"bytes"), store.put("b", b"other")

    with pytest.raises(TieredctlError, match="does not hold the same bytes") as raised:
        demand_same(store, one, other)

    assert raised.value.kind.code == "removal-failed"
    assert [stored.key for stored in store.list()] == ["a"]

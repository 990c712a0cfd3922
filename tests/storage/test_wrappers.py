"""Stores around stores: one that cannot be changed, one that counts."""

from __future__ import annotations

import pickle

import pytest

from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.storage.counting import CountingStore
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_store

CHANGES = ("put", "put_if_absent", "upload", "replace", "copy", "delete", "abort_multipart_upload")


@pytest.fixture
def filled() -> MemoryStore:
    store = MemoryStore()
    for number in range(3):
        store.put(f"{number}", b"0123")
    return store


@pytest.mark.parametrize("change", CHANGES)
def test_a_store_to_look_at_has_nothing_to_change_it_with(filled: MemoryStore, change: str) -> None:
    assert not hasattr(ReadOnlyStore(filled), change)


def test_a_store_to_look_at_claims_no_capability_to_change(filled: MemoryStore) -> None:
    assert ReadOnlyStore(filled).capabilities == frozenset()


def test_a_store_to_look_at_shows_what_is_there(filled: MemoryStore) -> None:
    store: ObjectStore = ReadOnlyStore(filled)

    assert list(store.list()) == list(filled.list())
    assert store.head("1") == filled.head("1")
    assert (store.read("1", 1, 3), b"".join(store.stream("1", 2))) == (b"12", b"23")


def test_who_opens_a_store_to_look_gets_one_that_cannot_be_changed() -> None:
    assert isinstance(open_store("memory:", {}), ReadOnlyStore)


def test_requests_are_counted_by_what_was_asked(filled: MemoryStore) -> None:
    store = CountingStore(filled)

    objects = list(store.list())
    store.head("0")
    store.read("0")
    store.read("1")
    list(store.stream("2"))
    store.put_if_absent("lock", b"")
    store.upload("log", 1, lambda: iter((b"1",)))
    store.copy(objects[0], "copy")
    store.delete(objects)

    assert store.requests == {
        "list": 1,
        "head": 1,
        "read": 2,
        "stream": 1,
        "put_if_absent": 1,
        "upload": 1,
        "copy": 1,
        "delete": 3,
    }


def test_a_listing_is_a_request_a_page() -> None:
    memory = MemoryStore()
    for number in range(2_001):
        memory.put(f"{number:04}", b"")
    store = CountingStore(memory)

    assert len(list(store.list())) == 2_001
    assert store.requests == {"list": 3}


def test_what_is_not_taken_of_a_listing_is_not_counted() -> None:
    memory = MemoryStore()
    for number in range(2_001):
        memory.put(f"{number:04}", b"")
    store = CountingStore(memory)

    next(store.list())

    assert store.requests == {"list": 1}


def test_a_pickled_store_counts_for_itself(filled: MemoryStore) -> None:
    store = CountingStore(filled)
    store.head("0")

    copy: CountingStore = pickle.loads(pickle.dumps(store))
    copy.read("0")

    assert (copy.requests, store.requests) == ({"read": 1}, {"head": 1})

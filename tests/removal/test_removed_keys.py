"""What a store remembers of the objects that tieredctl removed from it."""

from __future__ import annotations

import gzip
import json

import pytest

from tieredctl.ops.guards.own_objects import REMOVED_FOLDER
from tieredctl.ops.orphan_removal.removed_keys import keys_removed_by, note_put_back, note_removed, read_removed_keys
from tieredctl.storage.memory import MemoryStore

ODD = "a/\udcff é"


def test_what_was_removed_is_told_from_what_was_not() -> None:
    store = MemoryStore()
    note_removed(store, "plan", ["a", ODD])
    note_removed(store, "other", ["b"])

    removed = read_removed_keys(store)

    assert removed.among(["a", "b", "c", ODD]).tolist() == [True, True, False, True]
    assert (ODD in removed, "c" in removed, len(removed)) == (True, False, 3)
    assert [removed.plan_of(key) for key in ("a", "b", ODD, "c")] == ["plan", "other", "plan", None]


def test_a_store_of_which_nothing_was_removed_has_nothing() -> None:
    assert read_removed_keys(MemoryStore()).among(["a"]).tolist() == [False]


def test_what_was_put_back_would_be_missed() -> None:
    store = MemoryStore()
    note_removed(store, "plan", ["a", "b"])
    note_put_back(store, "plan", ["a"])

    assert read_removed_keys(store).among(["a", "b"]).tolist() == [False, True]


def test_what_another_plan_removed_once_more_is_removed() -> None:
    store = MemoryStore()
    note_removed(store, "first", ["a"])
    note_put_back(store, "first", ["a"])
    note_removed(store, "second", ["a"])

    assert "a" in read_removed_keys(store)


def test_one_plan_is_asked_for_its_own() -> None:
    store = MemoryStore()
    note_removed(store, "plan", ["a", "b"])
    note_put_back(store, "plan", ["a"])
    note_removed(store, "plan-2", ["c"])

    assert list(keys_removed_by(store, "plan")) == ["a", "b"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no JSON"),
        gzip.compress(b"[" * 100_000),
        gzip.compress(json.dumps({"removed": ["a", 1]}).encode()),
        gzip.compress(json.dumps({"removed": "a"}).encode()),
        gzip.compress(json.dumps({"removed": ["a"], "more": 1}).encode()),
        gzip.compress(json.dumps({"removed": ["a"]}).encode() + b" " * (32 << 20)),
        gzip.compress(json.dumps({"removed": ["a"]}).encode())[:-12],
    ],
    ids=["empty", "not packed", "no JSON", "deep", "a number", "no list", "more", "a bomb", "cut"],
)
def test_a_note_that_cannot_be_read_excuses_nothing(data: bytes) -> None:
    store = MemoryStore()
    note_removed(store, "plan", ["b"])
    store.put(f"{REMOVED_FOLDER}plan/damaged", data)

    removed = read_removed_keys(store)

    assert removed.among(["a", "b"]).tolist() == [False, True]
    assert removed.unreadable == [f"{REMOVED_FOLDER}plan/damaged"]

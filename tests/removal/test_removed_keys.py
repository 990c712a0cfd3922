"""What a store remembers of the objects that tieredctl removed from it."""

from __future__ import annotations

import gzip
import json

from tieredctl.ops.guards.own_objects import REMOVED_FOLDER
from tieredctl.ops.verification.options import RemovedBy
from tieredctl.ops.verification.removed_keys import (
    keys_removed_by,
    keys_removed_since,
    note_put_back,
    note_removed,
    read_removed_keys,
)
from tieredctl.storage.memory import MemoryStore

KEY, ANOTHER = b"k" * 32, b"a" * 32
ODD = "a/\udcff é"


def test_what_was_removed_is_told_from_what_was_not() -> None:
    store = MemoryStore()
    note_removed(store, KEY, "plan", ["a", ODD])
    note_removed(store, KEY, "other", ["b"])
    removed = read_removed_keys(store, KEY)
    assert removed.among(["a", "b", "c", ODD]).tolist() == [True, True, False, True]
    assert (ODD in removed, "c" in removed, len(removed)) == (True, False, 3)
    assert [removed.plan_of(key) for key in ("a", "b", ODD, "c")] == [
        RemovedBy("plan", is_sealed=True),
        RemovedBy("other", is_sealed=True),
        RemovedBy("plan", is_sealed=True),
        None,
    ]
    # A store of which nothing was removed has nothing.
    assert read_removed_keys(MemoryStore(), KEY).among(["a"]).tolist() == [False]


def test_what_was_put_back_would_be_missed_unless_it_was_removed_once_more() -> None:
    # What was put back would be missed.
    store = MemoryStore()
    note_removed(store, KEY, "plan", ["a", "b"])
    note_put_back(store, "plan", ["a"])
    assert read_removed_keys(store, KEY).among(["a", "b"]).tolist() == [False, True]
    # What another plan removed once more is removed.
    store = MemoryStore()
    note_removed(store, KEY, "first", ["a"])
    note_put_back(store, "first", ["a"])
    note_removed(store, KEY, "second", ["a"])
    assert "a" in read_removed_keys(store, KEY)
    # One plan is asked for its own.
    store = MemoryStore()
    note_removed(store, KEY, "plan", ["a", "b"])
    note_put_back(store, "plan", ["a"])
    note_removed(store, KEY, "plan-2", ["c"])
    assert list(keys_removed_by(store, "plan")) == ["a", "b"]


def test_a_note_that_cannot_be_read_excuses_nothing() -> None:
    cases: list[bytes] = [
        b"",
        b"no gzip",
        gzip.compress(b"no JSON"),
        gzip.compress(b"[" * 100_000),
        gzip.compress(json.dumps({"removed": ["a", 1]}).encode()),
        gzip.compress(json.dumps({"removed": "a"}).encode()),
        gzip.compress(json.dumps({"removed": ["a"], "more": 1}).encode()),
        gzip.compress(json.dumps({"removed": ["a"]}).encode() + b" " * (32 << 20)),
        gzip.compress(json.dumps({"removed": ["a"]}).encode())[:-12],
    ]
    for data in cases:
        store = MemoryStore()
        note_removed(store, KEY, "plan", ["b"])
        store.put(f"{REMOVED_FOLDER}plan/damaged", data)
        removed = read_removed_keys(store, KEY)
        assert removed.among(["a", "b"]).tolist() == [False, True], data
        assert removed.unreadable == [f"{REMOVED_FOLDER}plan/damaged"], data


def forged(store: MemoryStore, how: str) -> None:
    """Somebody who may write to the store says that `a` was removed."""
    if how == "of a release without seals":
        store.put(f"{REMOVED_FOLDER}plan/one", gzip.compress(json.dumps({"removed": ["a"]}).encode()))
    elif how == "by another key":
        note_removed(store, ANOTHER, "plan", ["a"])
    elif how == "without a key":
        note_removed(store, None, "plan", ["a"])
    else:
        sealed = MemoryStore()
        if how == "of another store":
            sealed.url = "memory:another"
        note_removed(sealed, KEY, "other" if how == "of another plan" else "plan", ["a"])
        (note,) = sealed.list()
        data = gzip.decompress(sealed.read(note.key))
        altered = data.replace(b'"a"', b'"a", "b"') if how == "altered" else data
        store.put(f"{REMOVED_FOLDER}plan/one", gzip.compress(altered))


def test_what_a_note_without_a_seal_says_is_no_proof() -> None:
    for how in [
        "of a release without seals",
        "by another key",
        "without a key",
        "of another plan",
        "of another store",
        "altered",
    ]:
        store = MemoryStore()
        forged(store, how)
        removed = read_removed_keys(store, KEY)
        assert removed.plan_of("a") == RemovedBy("plan", is_sealed=False), how
        assert not removed.is_proven("a"), how
        assert list(keys_removed_since(store, 0, KEY)) == [], how
        assert next(keys_removed_by(store, "plan")) == "a", how
    # What any sealed note says is proven.
    store = MemoryStore()
    note_removed(store, None, "a forged plan", ["a"])
    note_removed(store, KEY, "plan", ["a"])
    assert read_removed_keys(store, KEY).plan_of("a") == RemovedBy("plan", is_sealed=True)
    assert list(keys_removed_since(store, 0, KEY)) == ["a"]
    assert not read_removed_keys(store, None).is_proven("a")

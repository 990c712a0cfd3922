"""Notes of how old copies are: what the operator's key did not seal, or is of another version, makes nothing old."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.buckets_in_memory import BucketInMemory
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.removal_files import TIME_NOTE, encode_seal
from tieredctl.model.removal import OriginalTime, QuarantinedCopy, Receipt, ReceiptStep, Seal
from tieredctl.ops.guards.original_times import (
    NO_ORIGINAL_TIMES,
    OriginalTimes,
    forget_original_times,
    note_original_times,
    read_original_times,
)
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.sealed_notes import Sealer
from tieredctl.ops.orphan_removal.preparation import Evidence
from tieredctl.ops.orphan_removal.putting_back import note_times, put_back
from tieredctl.ops.remote.listing import record_batch
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

KEY, OTHER_KEY = bytes(range(32)), bytes(32)
FOLDER = ".tieredctl/times/restored/"
NOW_MS = 1_700_000_000_000
LONG_AGO_MS = 1_600_000_000_000
ODD = "a/\udcff é"


def noted(stored: StoredObject) -> OriginalTime:
    return OriginalTime(stored.key, stored.size, stored.last_modified_ms, stored.version, LONG_AGO_MS)


def store_with_a_note() -> tuple[BucketInMemory, StoredObject]:
    """A young object, and a note that it is old."""
    store = BucketInMemory(NOW_MS)
    young = store.write(ODD, b"bytes")
    note_original_times(store, KEY, FOLDER, [noted(young)])
    return store, young


def the_note(store: MemoryStore) -> StoredObject:
    (note,) = store.list(FOLDER)
    return note


def test_an_object_is_as_old_as_the_note_of_it_says() -> None:
    store, young = store_with_a_note()
    times = read_original_times(store, KEY, FOLDER)
    assert (times.noted_ms(young), times.of(young)) == (LONG_AGO_MS, LONG_AGO_MS)
    # A note makes nothing younger.
    old = StoredObject("a", 5, LONG_AGO_MS, "1")
    times = OriginalTimes([OriginalTime(*old[:4], NOW_MS)])
    assert times.of(old) == LONG_AGO_MS
    # Of two notes the younger time counts.
    young = StoredObject("a", 5, NOW_MS, "1")
    early, late = noted(young), noted(young)._replace(original_ms=LONG_AGO_MS + 1)
    assert [OriginalTimes(both).of(young) for both in ([early, late], [late, early])] == [LONG_AGO_MS + 1] * 2
    # A listing may tell the time more exactly.
    store, young = store_with_a_note()
    times = read_original_times(store, KEY, FOLDER)
    assert times.of(young._replace(last_modified_ms=young.last_modified_ms + 999)) == LONG_AGO_MS


OTHERS: dict[str, Callable[[StoredObject], StoredObject]] = {
    "another key": lambda young: young._replace(key="b"),
    "another size": lambda young: young._replace(size=6),
    "written a second later": lambda young: young._replace(last_modified_ms=young.last_modified_ms + 1_000),
    "another version": lambda young: young._replace(version="another"),
}


def test_a_note_is_of_one_version_of_one_object() -> None:
    for other in OTHERS.values():
        store, young = store_with_a_note()
        times = read_original_times(store, KEY, FOLDER)
        assert times.of(other(young)) >= NOW_MS, other


def sealed(body: bytes, key: bytes = KEY) -> bytes:
    sealer = Sealer(key)
    sealer.update(body)
    return body + encode_seal(sealer.seal())


def body_of(note: bytes) -> bytes:
    return note.splitlines(keepends=True)[0]


def of_another_store(note: bytes) -> bytes:
    return sealed(TIME_NOTE.encode(TIME_NOTE.decode(body_of(note))._replace(store="s3://another/")))


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "sealed with another key": lambda note: sealed(body_of(note), OTHER_KEY),
    "unsigned": lambda note: body_of(note) + encode_seal(Seal("0" * 64, None)),
    "without a seal": body_of,
    "of another store": of_another_store,
    "no note": lambda _: sealed(b'{"kind":"RemovalPlan"}\n'),
    "cut": lambda note: note[: len(note) // 2],
    "empty": lambda _: b"",
    "with a line before": lambda note: b"\n" + note,
    "with a line after": lambda note: note + b"\n",
    "twice": lambda note: note + note,
    "huge": lambda note: note + b" " * (9 << 20),
}


def test_what_was_not_sealed_so_makes_nothing_old() -> None:
    for forge in FORGERIES.values():
        store, young = store_with_a_note()
        note = the_note(store)
        store.write(note.key, forge(store.read(note.key)))
        assert read_original_times(store, KEY, FOLDER).of(young) == NOW_MS, forge


@given(st.data())
def test_a_note_of_which_a_byte_is_another_makes_nothing_old(data: st.DataObject) -> None:
    store, young = store_with_a_note()
    note = the_note(store)
    altered = bytearray(store.read(note.key))
    altered[data.draw(st.integers(0, len(altered) - 1))] ^= data.draw(st.integers(1, 255))
    store.write(note.key, bytes(altered))

    assert read_original_times(store, KEY, FOLDER).of(young) == NOW_MS


@given(st.lists(st.tuples(st.sampled_from(["a", "b", ODD]), st.booleans(), st.booleans()), max_size=20))
def test_columns_say_what_rows_do(drawn: Sequence[tuple[str, bool, bool]]) -> None:
    objects = [StoredObject(key, 5, NOW_MS, "1" if has_version else "2") for key, has_version, _ in drawn]
    among = np.array([is_asked_for for *_, is_asked_for in drawn], np.bool_)
    times = OriginalTimes([noted(StoredObject(key, 5, NOW_MS, "1")) for key in ("a", ODD)])

    batch = record_batch(objects)
    keys, sizes, modified, versions = (batch.column(name) for name in ("key", "size", "lastModifiedMs", "version"))
    found = times.of_columns(keys, sizes.to_numpy(), modified.to_numpy(), versions, among)

    assert found.tolist() == [times.of(one) if asked else NOW_MS for one, asked in zip(objects, among, strict=True)]


def test_where_nothing_is_noted_nothing_is_believed() -> None:
    # Without a key nothing is noted and nothing believed.
    store, young = store_with_a_note()
    note_original_times(store, None, FOLDER, [noted(young)])
    assert len(list(store.list(FOLDER))) == 1
    assert read_original_times(store, None, FOLDER).of(young) == NOW_MS
    # Where copies have the times of their originals nothing is noted.
    faithful = MemoryStore()
    note_original_times(faithful, KEY, FOLDER, [noted(faithful.put("a", b"bytes", NOW_MS))])
    assert list(faithful.list(FOLDER)) == []
    # Notes older than what looks young are not read.
    store, young = store_with_a_note()
    assert read_original_times(store, KEY, FOLDER, NOW_MS).of(young) == LONG_AGO_MS
    assert read_original_times(store, KEY, FOLDER, NOW_MS + 1).of(young) == NOW_MS


class Refusing(BucketInMemory):
    """Lets nobody read."""

    code = ErrorCode.STORE_FORBIDDEN

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        raise TieredctlError(self.code, f"{key} cannot be read.")


def test_a_note_that_may_not_be_read_makes_nothing_old_but_a_silent_store_is_not_one_without_notes() -> None:
    # A note that may not be read makes nothing old.
    store = Refusing(NOW_MS)
    young = store.write("a", b"bytes")
    note_original_times(store, KEY, FOLDER, [noted(young)])
    assert read_original_times(store, KEY, FOLDER).of(young) == NOW_MS
    # A store that does not answer is not a store without notes.
    store = Refusing(NOW_MS)
    store.code = ErrorCode.STORE_UNREACHABLE
    note_original_times(store, KEY, FOLDER, [noted(store.write("a", b"bytes"))])
    with pytest.raises(TieredctlError) as raised:
        read_original_times(store, KEY, FOLDER)
    assert raised.value.code is ErrorCode.STORE_UNREACHABLE


def removed(store: MemoryStore) -> tuple[Receipt, StoredObject]:
    """What is on record of an object from long ago, and its copy."""
    original = StoredObject("a", 5, LONG_AGO_MS, "1")
    copy = store.write(quarantine_key("cluster", "plan", original), b"bytes")
    kept = QuarantinedCopy(copy.key, copy.size, copy.last_modified_ms, copy.version)
    return Receipt(ReceiptStep.REMOVED, "a", NOW_MS, 5, kept, modified_ms=LONG_AGO_MS), copy


def accepting(store: MemoryStore) -> Evidence:
    """Nothing tells what the copy holds, which is accepted: that it is old needs a note all the same."""
    return Evidence(store, KEY, "plan", receipts_in_store=False, accept_unverified=True)


def test_what_is_put_back_from_a_noted_copy_is_noted() -> None:
    store = BucketInMemory(NOW_MS)
    receipt, copy = removed(store)

    note_times(store, KEY, [put_back(store, receipt, NOW_MS, accepting(store), OriginalTimes([noted(copy)]))])

    back = store.head("a")
    assert back is not None
    assert (back.last_modified_ms, read_original_times(store, KEY, FOLDER).of(back)) == (NOW_MS, LONG_AGO_MS)


def test_receipts_and_the_names_of_copies_prove_no_age() -> None:
    for case in ["no note", "a copy that was written again", "what is there already"]:
        store = BucketInMemory(NOW_MS)
        receipt, copy = removed(store)
        times = NO_ORIGINAL_TIMES if case == "no note" else OriginalTimes([noted(copy)])
        if case == "a copy that was written again":
            store.write(copy.key, b"bytes")
        if case == "what is there already":
            store.write("a", b"bytes")
        back = put_back(store, receipt, NOW_MS, accepting(store), times)
        note_times(store, KEY, [back])
        assert back.receipt.step is ReceiptStep.RESTORED, case
        assert (back.time, list(store.list(FOLDER))) == (None, []), case


def test_a_note_stays_as_long_as_one_of_its_objects_is_as_it_was() -> None:
    store = BucketInMemory(NOW_MS)
    both = [store.write(key, b"bytes") for key in "ab"]
    note_original_times(store, KEY, FOLDER, [noted(one) for one in both])
    store.delete(both[:1])
    forget_original_times(store, KEY, FOLDER)
    kept = len(list(store.list(FOLDER)))
    store.write("b", b"bytes")
    forget_original_times(store, KEY, FOLDER)
    assert (kept, list(store.list(FOLDER))) == (1, [])
    # A note of another key is not ours to delete.
    store = BucketInMemory(NOW_MS)
    note_original_times(store, OTHER_KEY, FOLDER, [OriginalTime("gone", 1, NOW_MS, "1", LONG_AGO_MS)])
    forget_original_times(store, KEY, FOLDER)
    assert len(list(store.list(FOLDER))) == 1

"""What every store does that can be changed (`tieredctl.ports.object_store.WritableObjectStore`)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    Capability,
    Deletion,
    DeletionOutcome,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.storage.trial import TRIAL_FOLDER
from tieredctl.testing.store_reading import keys_of, refused

WritableWith = Callable[[Mapping[str, bytes]], WritableObjectStore]
"""Makes a store that can be changed and holds these objects and no others."""

IMPOSSIBLE = ("", "n" * 1_025, "\ud800")
"""Keys that no cloud's objects can have."""
ODD = ("a b+c%41&?#=", "é/\U0001f600", "e\u0301/\u212b", "a*b\\c:|\"'<>~", "[a]{b}^`", "a\tb", " a ")
"""Keys that nearly all stores can hold."""
PART = 5 << 20
"""The smallest part that S3 takes."""
_PIECE_BYTES = 1 << 20
GONE, CHANGED = DeletionOutcome.GONE, DeletionOutcome.CHANGED


def head(store: WritableObjectStore, key: str) -> StoredObject:
    """The object under a key, which there must be."""
    stored = store.head(key)
    assert stored is not None
    return stored


def outcomes(deletions: Sequence[Deletion]) -> list[DeletionOutcome]:
    """What became of each object."""
    return [deletion.outcome for deletion in deletions]


def _pieces(size: int) -> Iterator[bytes]:
    """Bytes that differ from part to part."""
    for start in range(0, size, _PIECE_BYTES):
        yield (start.to_bytes(8) * (_PIECE_BYTES // 8))[: size - start]


class StoreChangesContract:
    """To be inherited by the tests of a store, which have a fixture `writable_with`.

    What needs a capability is tested where the store has it; where it lacks it, it has to refuse.
    """

    @pytest.fixture
    def keeps_writers_apart(self) -> bool:
        """Whether a condition and its write are one step. Some servers that are made for tests take two."""
        return True

    @pytest.fixture
    def impossible_keys(self) -> Collection[str]:
        """Keys that the store cannot hold."""
        return IMPOSSIBLE

    @pytest.fixture
    def odd_keys(self) -> Collection[str]:
        """Keys that the store can hold, though they are unusual."""
        return ODD

    @pytest.fixture
    def largest_batch(self) -> int:
        """How many objects are deleted at once."""
        return MOST_DELETED_AT_ONCE

    def test_a_trial_leaves_nothing_behind(self, writable_with: WritableWith) -> None:
        store = writable_with({"kept": b""})

        assert keys_of(store) == ["kept"]
        assert list(store.list(TRIAL_FOLDER)) == []

    def test_a_pickled_store_can_still_be_changed(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"1"})

        copy: WritableObjectStore = pickle.loads(pickle.dumps(store))

        assert copy.capabilities == store.capabilities
        assert outcomes(copy.delete([head(copy, "a")])) == [GONE]

    def test_what_is_put_is_there(self, writable_with: WritableWith) -> None:
        for data in (b"mine", b""):
            store = writable_with({})
            if Capability.CONDITIONAL_WRITE in store.capabilities:
                made = store.put_if_absent("locks/cluster", data)

                assert made == head(store, "locks/cluster")
                assert store.read("locks/cluster") == data

    def test_what_is_there_is_not_put_again(self, writable_with: WritableWith) -> None:
        store = writable_with({"lock": b"theirs"})
        before = head(store, "lock")

        if Capability.CONDITIONAL_WRITE in store.capabilities:
            assert store.put_if_absent("lock", b"mine") is None
        assert head(store, "lock") == before
        assert store.read("lock") == b"theirs"

    def test_what_is_uploaded_is_there_in_parts_or_at_once(self, writable_with: WritableWith) -> None:
        for size, part_bytes in ((0, PART), (PART - 1, PART), (PART, PART), (2 * PART + 1, PART), (1, 1)):
            store = writable_with({})
            if Capability.CONDITIONAL_UPLOAD in store.capabilities:
                made = store.upload("a/b", size, partial(_pieces, size), part_bytes)

                assert made is not None
                assert made[:2] == head(store, "a/b")[:2] == ("a/b", size)
                assert made.version == head(store, "a/b").version
                assert b"".join(store.stream("a/b")) == b"".join(_pieces(size))
                assert keys_of(store) == ["a/b"]

    @pytest.mark.parametrize("size", [1, PART + 1])
    def test_an_upload_replaces_nothing(self, writable_with: WritableWith, size: int) -> None:
        store = writable_with({})
        if Capability.CONDITIONAL_UPLOAD not in store.capabilities:
            return

        def overtaken() -> Iterator[bytes]:
            store.write("a", b"theirs")
            yield from _pieces(size)

        assert store.upload("a", size, overtaken, PART) is None
        assert store.upload("a", size, partial(_pieces, size), PART) is None
        assert store.read("a") == b"theirs"

    def test_an_upload_of_other_bytes_than_announced_leaves_nothing(self, writable_with: WritableWith) -> None:
        for announced in (PART, PART + 1, PART + 3):
            store = writable_with({})
            if Capability.CONDITIONAL_UPLOAD in store.capabilities:
                with refused("unreadable"):
                    store.upload("a", announced, partial(_pieces, PART + 2), PART)

                assert keys_of(store) == []
                if Capability.MULTIPART_UPLOADS in store.capabilities:
                    assert list(store.multipart_uploads()) == []

    def test_an_upload_that_cannot_be_read_to_its_end_leaves_nothing(self, writable_with: WritableWith) -> None:
        store = writable_with({})

        def broken_off() -> Iterator[bytes]:
            yield from _pieces(PART + 1)
            raise KeyboardInterrupt

        if Capability.CONDITIONAL_UPLOAD in store.capabilities:
            with pytest.raises(KeyboardInterrupt):
                store.upload("a", 2 * PART, broken_off, PART)

            assert keys_of(store) == []
            if Capability.MULTIPART_UPLOADS in store.capabilities:
                assert list(store.multipart_uploads()) == []

    def test_of_uploads_at_once_one_makes_the_object(
        self, writable_with: WritableWith, keeps_writers_apart: bool
    ) -> None:
        store = writable_with({})
        if not keeps_writers_apart or Capability.CONDITIONAL_UPLOAD not in store.capabilities:
            return

        def upload(writer: int) -> StoredObject | None:
            return store.upload("a", PART + 1, lambda: iter([b"%d" % writer * PART, b"%d" % writer]), PART)

        with ThreadPoolExecutor(4) as writers:
            made = list(writers.map(upload, range(4)))

        winners = [writer for writer, stored in enumerate(made) if stored is not None]
        assert len(winners) == 1
        assert set(store.read("a")) == {ord(str(winners[0]))}

    def test_what_is_written_is_there_whatever_was(self, writable_with: WritableWith) -> None:
        for there in ({}, {"a/b": b"before"}):
            store = writable_with(there)

            written = store.write("a/b", b"data")

            assert (written, store.read("a/b")) == (store.head("a/b"), b"data")

    def test_of_writers_at_once_one_makes_the_object(
        self, writable_with: WritableWith, keeps_writers_apart: bool
    ) -> None:
        store = writable_with({})
        if not keeps_writers_apart or Capability.CONDITIONAL_WRITE not in store.capabilities:
            return

        with ThreadPoolExecutor(8) as writers:
            made = list(writers.map(lambda writer: store.put_if_absent("lock", b"%d" % writer), range(8)))

        winners = [writer for writer, stored in enumerate(made) if stored is not None]
        assert len(winners) == 1
        assert store.read("lock") == b"%d" % winners[0]

    def test_the_current_version_alone_is_replaced(self, writable_with: WritableWith) -> None:
        store = writable_with({"lock": b"lease 1"})
        past = head(store, "lock")
        if Capability.CONDITIONAL_WRITE not in store.capabilities:
            return

        made = store.replace(past, b"lease two")

        assert made == head(store, "lock")
        assert store.replace(past, b"lease of another") is None
        assert store.read("lock") == b"lease two"

    def test_what_is_gone_is_not_replaced(self, writable_with: WritableWith) -> None:
        store = writable_with({"lock": b"lease 1"})
        past = head(store, "lock")
        store.delete([past])

        if Capability.CONDITIONAL_WRITE in store.capabilities:
            assert store.replace(past, b"lease two") is None
        assert keys_of(store) == []

    def test_of_writers_at_once_one_replaces_the_version(
        self, writable_with: WritableWith, keeps_writers_apart: bool
    ) -> None:
        store = writable_with({"lock": b"free"})
        free = head(store, "lock")
        if not keeps_writers_apart or Capability.CONDITIONAL_WRITE not in store.capabilities:
            return

        with ThreadPoolExecutor(8) as writers:
            made = list(writers.map(lambda writer: store.replace(free, b"writer %d" % writer), range(8)))

        winners = [writer for writer, stored in enumerate(made) if stored is not None]
        assert len(winners) == 1
        assert store.read("lock") == b"writer %d" % winners[0]

    def test_a_store_without_conditions_is_asked_for_none(self, writable_with: WritableWith) -> None:
        store = writable_with({"lock": b"theirs"})
        if Capability.CONDITIONAL_WRITE in store.capabilities:
            return

        with refused("store-incapable"):
            store.put_if_absent("other", b"mine")
        with refused("store-incapable"):
            store.replace(head(store, "lock"), b"mine")
        with refused("store-incapable"):
            store.upload("other", 1, lambda: iter([b"1"]))

        assert keys_of(store) == ["lock"]
        assert store.read("lock") == b"theirs"

    def test_a_copy_holds_the_same_bytes(self, writable_with: WritableWith) -> None:
        for data in (b"0123456789", b""):
            store = writable_with({"orders-0/1.log": data})

            made = store.copy(head(store, "orders-0/1.log"), "quarantine/orders-0/1.log")

            assert made == head(store, "quarantine/orders-0/1.log")
            assert keys_of(store) == ["orders-0/1.log", "quarantine/orders-0/1.log"]
            assert store.read("quarantine/orders-0/1.log") == data

    def test_a_copy_has_the_time_that_it_is_given_where_times_can_be_set(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"0"})

        made = store.copy(head(store, "a"), "b", 1_600_000_000_123)

        assert made == head(store, "b")
        if Capability.MODIFICATION_TIMES in store.capabilities:
            assert made.last_modified_ms == 1_600_000_000_123

    def test_a_copy_replaces_what_is_there(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"new", "b": b"former"})

        store.copy(head(store, "a"), "b")

        assert store.read("b") == b"new"

    def test_what_is_gone_is_not_copied(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"1"})
        past = head(store, "a")
        store.delete([past])

        assert store.copy(past, "b") is None
        assert keys_of(store) == []

    def test_a_past_version_is_not_copied(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"past", "b": b"the present"})
        past = head(store, "a")
        store.copy(head(store, "b"), "a")

        assert store.copy(past, "c") is None
        assert keys_of(store) == ["a", "b"]

    def test_checksums_of_a_copy_never_contradict_its_bytes(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"0123456789", "b": b"012345678x"})
        store.copy(head(store, "a"), "copy")

        kept, of_copy, of_other = (store.checksums(head(store, key)) for key in ("a", "copy", "b"))

        assert not {name for name in kept if name in of_other and kept[name] == of_other[name]}
        assert {name: of_copy[name] for name in kept if name in of_copy} == {
            name: kept[name] for name in of_copy if name in kept
        }
        assert kept.get("md5") in (None, "781e5e245d69b566979b86e28d23f2c7")

    def test_there_are_no_checksums_of_a_version_that_is_past(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"past", "b": b"the present"})
        past = head(store, "a")
        store.copy(head(store, "b"), "a")

        assert store.checksums(past) == {}

    def test_each_deletion_is_reported(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"1", "b": b"2", "c": b"3"})
        wanted = [head(store, "c"), head(store, "a")]

        deletions = store.delete(wanted)

        assert deletions == [Deletion(stored, GONE) for stored in wanted]
        assert keys_of(store) == ["b"]

    def test_what_is_gone_already_is_gone(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"1"})
        stored = head(store, "a")
        store.delete([stored])

        assert outcomes(store.delete([stored])) == [GONE]

    def test_nothing_to_delete_is_not_a_request(self, writable_with: WritableWith) -> None:
        assert list(writable_with({"a": b"1"}).delete([])) == []

    def test_a_version_that_is_past_is_left_alone(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"1", "b": b"2", "c": b"written again"})
        past, other = head(store, "a"), head(store, "b")
        store.copy(head(store, "c"), "a")
        if Capability.CONDITIONAL_DELETE not in store.capabilities:
            return

        assert outcomes(store.delete([past, other])) == [CHANGED, GONE]
        assert store.read("a") == b"written again"

    def test_only_the_key_itself_is_deleted(self, writable_with: WritableWith) -> None:
        store = writable_with({"a/1": b"", "a/10": b""})

        store.delete([head(store, "a/1")])

        assert keys_of(store) == ["a/10"]

    def test_a_whole_batch_is_deleted(self, writable_with: WritableWith, largest_batch: int) -> None:
        store = writable_with({f"{number:04}": b"" for number in range(largest_batch)})

        deletions = store.delete(list(store.list()))

        assert outcomes(deletions) == [GONE] * largest_batch
        assert keys_of(store) == []

    def test_more_than_a_batch_is_refused(self, writable_with: WritableWith) -> None:
        store = writable_with({"a": b""})

        with pytest.raises(ValueError, match="1001 objects"):
            store.delete([head(store, "a")] * (MOST_DELETED_AT_ONCE + 1))

    def test_odd_keys_are_listed_read_copied_and_deleted(
        self, writable_with: WritableWith, odd_keys: Collection[str]
    ) -> None:
        for key in odd_keys:
            store = writable_with({key: b"odd", "other": b""})

            store.copy(head(store, key), "copies/" + key)
            outcome = outcomes(store.delete([head(store, key)]))

            assert (key, outcome) == (key, [GONE])
            assert sorted(keys_of(store)) == sorted(["copies/" + key, "other"])
            assert store.read("copies/" + key) == b"odd"

    def test_a_key_that_cannot_be_is_not_written(
        self, writable_with: WritableWith, impossible_keys: Collection[str]
    ) -> None:
        store = writable_with({"a": b"1"})

        for key in impossible_keys:
            with refused("unwritable"):
                pytest.fail(f"{key!r} was written: {store.copy(head(store, 'a'), key)}")

        assert keys_of(store) == ["a"]

    def test_a_store_without_uploads_in_parts_says_so(self, writable_with: WritableWith) -> None:
        store = writable_with({})
        if Capability.MULTIPART_UPLOADS in store.capabilities:
            assert list(store.multipart_uploads()) == []
            return

        with refused("store-incapable"):
            next(store.multipart_uploads())

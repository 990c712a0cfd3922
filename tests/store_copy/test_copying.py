"""A store copied to another: nothing is replaced, each copy is looked at again, and killed anywhere it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pytest

from tests.rigs.mortal_store import Killed, MortalStore
from tests.store_copy.copies import Copied, contents, copied, killed_at_each_boundary, store_of
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.windows import Ints
from tieredctl.ops.guards.own_objects import COPY_KEY
from tieredctl.ops.store_copy.comparison import By, Mark
from tieredctl.ops.store_copy.difference import Difference, oldest_first
from tieredctl.ops.store_copy.run import MOST_PASSES, demand_uploads
from tieredctl.ports.object_store import UPLOAD_PART_BYTES, Capability, Pieces, StoredObject
from tieredctl.storage.memory import MemoryStore

SOURCE = {"z": b"1", "b/c": b"22", "empty": b"", "a": b"4444", "large": bytes(range(256)) * (1 << 16)}
AFTER_THE_LEASE_MS = 3_600_000


class Upload(MemoryStore):
    """A store that does something else with what it is sent: `stored` gives the bytes that it keeps."""

    def stored(self, key: str, data: bytes) -> bytes | None:
        """None where it keeps nothing, and says that it does."""
        return data

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        del part_bytes
        data = b"".join(pieces())
        kept = self.stored(key, data)
        if kept is None:
            return StoredObject(key, size, 0, "never")
        return super().upload(key, len(kept), lambda: iter((kept,)))


def test_a_copy_is_the_source_and_the_source_stays_as_it_was() -> None:
    source, destination = store_of(SOURCE), MemoryStore()
    before = list(source.list())

    done = copied(source, destination)

    assert contents(destination) == SOURCE
    assert list(source.list()) == before
    assert (done.run.exit_code(), done.run.outcome.done, done.run.passes) == (0, len(SOURCE), 1)
    assert {row.checked_by for row in done.rows} == {"md5-read"}


def test_the_oldest_is_copied_first() -> None:
    done = copied(store_of(SOURCE), MemoryStore())

    assert [row.key for row in done.rows] == list(SOURCE)


def test_objects_far_apart_in_time_are_found_again_in_a_large_difference() -> None:
    names = [f"{number:05}" for number in range(10_000)]
    objects = [StoredObject(name, 1, int(name[::-1]), f"v{name}") for name in names]

    with Difference(objects, oldest_first) as difference:
        assert [one.key for one in difference.in_turn()] == sorted(names, key=lambda name: name[::-1])
        assert (difference.objects, difference.bytes) == (10_000, 10_000)


def test_turns_decide_and_keys_do_where_these_are_the_same() -> None:
    def turns(objects: pa.RecordBatch) -> Ints:
        return np.array([0 if key == b"large" else 1 for key in objects.column("key").to_pylist()])

    done = copied(store_of(SOURCE), MemoryStore(), turns=turns)

    assert [row.key for row in done.rows] == ["large", "a", "b/c", "empty", "z"]


def test_what_is_there_already_is_left_alone_whatever_it_holds() -> None:
    source, destination = store_of(SOURCE), store_of({"a": b"other", "b/c": b"33", "more": b"1"})

    by_size, by_checksum = (copied(source, destination, by) for by in (By.SIZE, By.CHECKSUM))

    assert contents(destination) == SOURCE | {"a": b"other", "b/c": b"33", "more": b"1"}
    assert (by_size.run.exit_code(), by_checksum.run.exit_code()) == (3, 3)
    assert [done.run.summary()["different"] for done in (by_size, by_checksum)] == [1, 2]
    assert by_checksum.results() == []


def test_a_key_that_has_nothing_and_is_refused_is_not_said_to_have_something() -> None:
    """As servers do that count a delete marker."""

    class Refusing(MemoryStore):
        def upload(
            self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES
        ) -> StoredObject | None:
            return None if key == "a" else super().upload(key, size, pieces, part_bytes)

    done = copied(store_of(SOURCE), Refusing())

    left = {(row.result, "delete marker" in str(row.reason)) for row in done.rows if row.key == "a"}
    assert (left, done.run.exit_code()) == ({("failed", True)}, 5)


def test_what_is_added_meanwhile_is_copied_in_another_pass() -> None:
    class Growing(Upload):
        def stored(self, key: str, data: bytes) -> bytes:
            if key == "large":
                source.put("added", b"late")
            return data

    source, destination = store_of(SOURCE), Growing()

    done = copied(source, destination)

    assert contents(destination) == SOURCE | {"added": b"late"}
    assert (done.run.passes, done.run.exit_code(), done.run.outcome.done) == (2, 0, len(SOURCE) + 1)


def test_a_source_that_grows_faster_than_it_is_copied_ends_incomplete() -> None:
    class Growing(Upload):
        def stored(self, key: str, data: bytes) -> bytes:
            source.put(f"{key}+", b"more")
            return data

    source = store_of({"a": b"1"})

    done = copied(source, Growing())

    assert (done.run.passes, done.run.exit_code()) == (MOST_PASSES, 5)


def test_an_object_that_is_replaced_while_it_is_copied_is_not_called_done_until_it_is() -> None:
    class Overtaken(Upload):
        def stored(self, key: str, data: bytes) -> bytes:
            if key == "a" and data == b"4444":
                source.put("a", b"5555")
            return data

    source, destination = store_of(SOURCE), Overtaken()

    done = copied(source, destination)

    assert ("changed", "a") in done.results()
    assert contents(destination) == SOURCE | {"a": b"5555"}
    assert done.run.exit_code() == 0


def test_an_object_that_the_source_deletes_meanwhile_is_passed_over() -> None:
    class Vanishing(Upload):
        def stored(self, key: str, data: bytes) -> bytes:
            source.delete([one for one in source.list() if one.key in ("a", key)])
            return data

    source, destination = store_of({"z": b"1", "a": b"2", "c": b"3"}), Vanishing()

    done = copied(source, destination)

    assert {key: result for result, key in done.results()} == dict.fromkeys("zac", "changed")
    assert contents(destination) == {"z": b"1", "c": b"3"}, "the last copies of what was deleted"
    assert done.run.exit_code() == 0


def test_a_copy_that_cannot_be_looked_at_again_is_not_called_done_in_any_pass() -> None:
    class Shy(MemoryStore):
        def stream(self, key: str, start: int = 0, chunk_size: int = 1) -> Iterator[bytes]:
            if key == "a":
                raise TieredctlError(ErrorCode.STORE_FORBIDDEN, "no")
            return super().stream(key, start, chunk_size)

        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            if key == "a":
                raise TieredctlError(ErrorCode.STORE_FORBIDDEN, "no")
            return super().read(key, start, end)

    source, destination = store_of(SOURCE), Shy()
    done, again = copied(source, destination), copied(source, destination)

    assert ("unproven", "a") in done.results()
    assert (done.run.exit_code(), done.run.unproven) == (5, 1)
    assert (again.run.exit_code(), again.results()) == (5, []), "the right size proves nothing"


@pytest.mark.parametrize("kept", [b"4445", b"444", None])
def test_a_destination_that_keeps_other_bytes_is_found_out(kept: bytes | None) -> None:
    class Lying(Upload):
        def stored(self, key: str, data: bytes) -> bytes | None:
            return kept if key == "a" else data

    source, destination = store_of(SOURCE), Lying()

    done = copied(source, destination)

    assert ("failed", "a") in done.results()
    assert ("copied", "a") not in done.results()
    assert "a" not in contents(destination)
    assert done.run.exit_code() == 5


def test_a_wrong_copy_stays_where_the_store_might_delete_another() -> None:
    class Careless(Upload):
        capabilities = MemoryStore.capabilities - {Capability.CONDITIONAL_DELETE}
        lies = True

        def stored(self, key: str, data: bytes) -> bytes:
            return b"4445" if key == "a" and self.lies else data

    source, destination = store_of(SOURCE), Careless()
    done = copied(source, destination)

    (row,) = [row for row in done.rows if row.key == "a"]
    assert (row.result, "not removed" in (row.reason or "")) == ("unproven", True)
    assert done.run.exit_code() == 5
    for _ in range(2):
        assert copied(source, destination).run.exit_code() == 3, "whoever runs it next"
    destination.delete([one for one in destination.list() if one.key == "a"])
    destination.lies = False
    mended = copied(source, destination)
    assert (mended.run.exit_code(), destination.read(COPY_KEY), contents(destination)) == (0, b"", SOURCE)


def test_what_a_killed_run_wrote_and_nobody_looked_at_is_compared_by_checksum() -> None:
    class Dying(Upload):
        now_ms = 0

        def stored(self, key: str, data: bytes) -> bytes:
            return b"4445" if key == "a" else data

        def stream(self, key: str, start: int = 0, chunk_size: int = 1 << 20) -> Iterator[bytes]:
            if key == "a" and self.now_ms == 0:
                raise Killed
            return super().stream(key, start, chunk_size)

        def clock_ms(self) -> int:
            self.now_ms += 10_000 if self.now_ms else 0
            return self.now_ms

    source, destination = store_of({key: data for key, data in SOURCE.items() if key != "large"}), Dying()
    destination.put("old", b"1", -AFTER_THE_LEASE_MS)
    source.put("old", b"2")
    with pytest.raises(Killed):
        copied(source, destination, clock_ms=destination.clock_ms)
    destination.now_ms = AFTER_THE_LEASE_MS
    source.put("later", b"1")

    done = copied(source, destination, clock_ms=destination.clock_ms)

    assert (done.run.exit_code(), done.run.comparison.counts[Mark.DIFFERENT]) == (3, 1), "old is not of that run"
    assert (done.run.comparison.looked_at, done.results()) == (4, [("copied", "later")]), "its own are proven already"


def test_what_is_read_is_held_against_the_sources_own_checksum() -> None:
    class Keeping(MemoryStore):
        def checksums(self, stored: StoredObject) -> Mapping[str, str]:
            return {"md5": "0" * 32} if stored.key == "a" else {}

    source, destination = store_of(SOURCE, Keeping()), MemoryStore()

    done = copied(source, destination)

    assert ("failed", "a") in done.results()
    assert "a" not in contents(destination)


def test_a_listing_that_lacks_what_is_there_replaces_nothing() -> None:
    class Forgetful(MemoryStore):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            return (one for one in super().list(prefix, start_after) if one.key != "a")

    source, destination = store_of(SOURCE), store_of({"a": b"others'"}, Forgetful())

    done = copied(source, destination)

    assert ("exists", "a") in done.results()
    assert destination.read("a") == b"others'"
    assert done.run.exit_code() == 5


def test_a_key_that_the_destination_cannot_hold_or_may_not_write_keeps_no_other_from_being_copied() -> None:
    class Refusing(Upload):
        def stored(self, key: str, data: bytes) -> bytes:
            if key == "a":
                raise TieredctlError(ErrorCode.STORE_FORBIDDEN, "no")
            return data

    done = copied(store_of(SOURCE), destination := Refusing())

    assert contents(destination) == {key: data for key, data in SOURCE.items() if key != "a"}
    assert (done.run.exit_code(), ("failed", "a") in done.results()) == (5, True)


def test_a_store_that_stops_answering_stops_the_run() -> None:
    class Silent(Upload):
        def stored(self, key: str, data: bytes) -> bytes:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "gone")

    done = copied(store_of(SOURCE), Silent())

    assert done.run.outcome.stopped_by == "store-unreachable"
    assert (done.rows, done.run.exit_code()) == ([], 1)


def test_a_store_that_cannot_keep_writers_apart_is_not_copied_to() -> None:
    for lacking in (Capability.CONDITIONAL_WRITE, Capability.CONDITIONAL_UPLOAD):
        store = MemoryStore()
        store.capabilities = MemoryStore.capabilities - {lacking}

        with pytest.raises(TieredctlError) as refused:
            demand_uploads(store)

        assert refused.value.code == ErrorCode.STORE_INCAPABLE


def test_killed_anywhere_nothing_is_half_there_and_a_second_run_ends_where_one_would() -> None:
    def run(store: MortalStore, now_ms: int = 0) -> Copied:
        store.now_ms = now_ms
        return copied(source, store, clock_ms=store.clock_ms)

    source = store_of(SOURCE)
    before = list(source.list())

    for store in killed_at_each_boundary(run):
        assert contents(store).items() <= SOURCE.items()
        done = run(store, AFTER_THE_LEASE_MS)

        assert (done.run.exit_code(), contents(store)) == (0, SOURCE)
    assert list(source.list()) == before

"""Many objects are proven by one listing, where versions are the MD5 of bytes; whatever that does not show is asked
for by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rigs.mortal_store import Killed
from tests.store_copy.copies import Copied, Etagged, contents, copied, store_of
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.own_objects import COPY_KEY
from tieredctl.ops.store_copy.comparison import Mark
from tieredctl.ports.object_store import UPLOAD_PART_BYTES, Pieces, StoredObject
from tieredctl.storage.counting import CountingReader, CountingStore

SOURCE = {f"{number:03}": str(number).encode() for number in range(40)}


class Lying(Etagged):
    """Answers about each upload as if it had kept what it was sent."""

    kept: bytes | None = None
    """What it keeps of the first object; None where it keeps nothing of it."""

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        made = super().upload(key, size, pieces, part_bytes)
        if key == "000" and made is not None:
            del self._objects[key]
            if self.kept is not None:
                self.put(key, self.kept, made.last_modified_ms)
        return made


def row_of(done: Copied, key: str) -> list[tuple[str, str | None]]:
    return [(row.result, row.checked_by) for row in done.rows if row.key == key]


def test_an_object_is_read_once_and_written_once_and_nothing_else_is_asked_for_it() -> None:
    source = CountingReader(store_of(SOURCE, Etagged()))
    destination = CountingStore(Etagged())

    done = copied(source, destination)

    assert {(row.result, row.checked_by) for row in done.rows} == {("copied", "md5")}
    assert (done.run.exit_code(), contents(destination.store)) == (0, SOURCE)
    assert source.requests == {"list": 2, "read": len(SOURCE)}
    of_run = {name: count for name, count in destination.requests.items() if count > 9}
    assert of_run == {"upload": len(SOURCE)}


def test_what_a_store_says_that_it_keeps_and_does_not_is_found_out() -> None:
    for kept, told in ((b"", "unproven"), (b"1", "unproven"), (None, "failed")):
        destination = Lying()
        destination.kept = kept

        done = copied(store_of(SOURCE, Etagged()), destination)

        assert {result for result, _ in row_of(done, "000")} == {told}, kept
        assert done.run.exit_code() == 5, kept
        assert done.run.outcome.done == len(SOURCE) - 1, kept
        assert (destination.read(COPY_KEY) == b"") is (kept is None), "whether none is there unproven"


def test_what_others_have_replaced_since_is_left_alone() -> None:
    class Overtaken(Etagged):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            if "000" in self._objects:
                self.put("000", b"theirs")
            return super().list(prefix, start_after)

    destination = Overtaken()

    done = copied(store_of(SOURCE, Etagged()), destination)

    assert row_of(done, "000") == [("unproven", None)]
    assert destination.read("000") == b"theirs"
    assert done.run.exit_code() == 5


def test_an_object_that_the_listing_leaves_out_is_asked_for_by_itself() -> None:
    class Forgetful(Etagged):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            return (one for one in super().list(prefix, start_after) if one.key != "000")

    destination = CountingStore(Forgetful())

    done = copied(store_of(SOURCE, Etagged()), destination)

    assert row_of(done, "000")[0] == ("copied", "md5")
    assert destination.requests["checksums"] == 1


def test_versions_that_say_nothing_of_bytes_prove_nothing() -> None:
    class Encrypting(Etagged):
        """As S3 with keys of KMS."""

        def put(self, key: str, data: bytes, last_modified_ms: int = 0) -> StoredObject:
            stored = super().put(key, b"salt" + data, last_modified_ms)._replace(size=len(data))
            self._objects[key] = (stored, data)
            return stored

        def checksums(self, stored: StoredObject) -> dict[str, str]:
            return {}

    for source, destination in ((Etagged(), Encrypting()), (Encrypting(), Etagged()), (Encrypting(), Encrypting())):
        done = copied(store_of(SOURCE, source), destination)

        hows = {how for result, how in (pair for key in SOURCE for pair in row_of(done, key))}
        assert hows == {"md5-read" if isinstance(destination, Encrypting) else "md5"}
        assert contents(destination) == SOURCE


def test_a_few_objects_are_no_reason_to_list_a_large_store() -> None:
    many = {f"old-{number}": b"" for number in range(200)}
    destination = CountingStore(store_of(many, Etagged()))

    done = copied(store_of(many | {"new": b"1"}, Etagged()), destination)

    assert row_of(done, "new") == [("copied", "md5")]
    assert destination.requests["list"] == 1 + 2, "before, and after with what is behind tieredctl's own objects"
    assert destination.requests["checksums"] == 1


def test_a_run_that_ends_early_has_proven_what_an_earlier_listing_showed() -> None:
    class Gone(Etagged):
        def upload(
            self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES
        ) -> StoredObject | None:
            if key == "030":
                raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "gone")
            return super().upload(key, size, pieces, part_bytes)

    destination = CountingStore(Gone())

    done = copied(store_of(SOURCE, Etagged()), destination, listed_from=5)

    assert done.run.outcome.stopped_by == "store-unreachable"
    assert [row.key for row in done.rows] == [f"{number:03}" for number in range(20)], "after 5, 10 and 20"
    assert destination.requests["list"] == 1 + 3 * 2


def test_killed_before_the_listing_the_next_run_compares_what_was_written_by_checksum() -> None:
    class Mortal(Lying):
        kept = b"1"
        now_ms = 0

        def clock_ms(self) -> int:
            return self.now_ms

        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            if not self.now_ms and "039" in self._objects:
                raise Killed
            return super().list(prefix, start_after)

    source, destination = store_of(SOURCE, Etagged()), Mortal()
    with pytest.raises(Killed):
        copied(source, destination, clock_ms=destination.clock_ms)
    destination.now_ms = 3_600_000

    done = copied(source, destination, clock_ms=destination.clock_ms)

    assert (done.run.exit_code(), done.run.comparison.counts[Mark.DIFFERENT]) == (3, 1)
    assert destination.read(COPY_KEY) != b""

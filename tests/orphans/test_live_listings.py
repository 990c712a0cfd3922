"""A store's listing, by several ranges at once, and resumed: every object once, by ascending key."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.shares import divided
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.orphans.key_ranges import division, key_between
from tieredctl.ops.orphans.listing_checkpoint import ListingCheckpoint
from tieredctl.ops.orphans.live_listing import LiveListing, ResumableListing
from tieredctl.ops.remote.listing import Listing
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

NOW_MS, DAY_MS = 1_800_000_000_000, 86_400_000
LAYOUTS = {
    "a folder a partition": [f"t-{p}/{k:020}.log" for p in range(40) for k in range(800)],
    "one partition": [f"tiered/orders-0/{k * 977:020}-{k * k % 7919:04}.log" for k in range(30_000)],
    "one large among small": [
        *(f"a{t}/{k}" for t in range(100) for k in range(3)),
        *(f"b/{k:08}" for k in range(30_000)),
    ],
    "names beyond ASCII": [f"é/{chr(0x3B1 + k % 24)}{k}" for k in range(30_000)],
    "each the next one's beginning": ["a" * k for k in range(1, 400)] + [f"{'a' * 400}{k}" for k in range(20_000)],
}


class Pages(MemoryStore):
    """A store that is read by several threads, and fails after so many objects."""

    parallel_reads = 8

    def __init__(self, keys: Sequence[str], fails_after: int | None = None) -> None:
        super().__init__()
        self._keys = sorted(set(keys))
        self._fails_after = fails_after
        self._giving = Lock()
        self.given = 0
        self.began_at: list[str] = []

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self.began_at.append(start_after)
        for key in islice(self._keys, bisect_right(self._keys, start_after), None):
            with self._giving:
                self.given += 1
                if self._fails_after is not None and self.given > self._fails_after:
                    raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It is gone.")
            yield StoredObject(key, len(key), NOW_MS, key[-3:], "GLACIER" if len(key) % 2 else None)


def keys_of(listing: Listing) -> list[str]:
    with listing as entered:
        return [key.decode() for batch in entered.batches() for key in batch.column("key").to_pylist()]


def resumed(store: MemoryStore, file: Path, *, now_ms: int = NOW_MS, identity: str = "memory:") -> ResumableListing:
    return ResumableListing(store, identity, file, now_ms, now_ms - DAY_MS)


def interrupt(store: Pages, file: Path) -> None:
    with pytest.raises(TieredctlError, match="It is gone"):
        keys_of(resumed(store, file))


def test_every_object_is_listed_once_and_in_order() -> None:
    for name, keys in LAYOUTS.items():
        store = Pages(keys)

        assert keys_of(LiveListing(store)) == sorted(keys), name
        assert len(store.began_at) > 1, name


def test_a_small_store_is_asked_no_more_than_it_takes() -> None:
    store = Pages([f"{k:05}" for k in range(5_000)])
    assert len(keys_of(LiveListing(store))) == 5_000
    assert store.began_at == [""]
    # An empty store is an empty listing.
    assert keys_of(LiveListing(Pages([]))) == []
    # All that the store tells of an object comes along.
    with LiveListing(Pages(["a/bcd"])) as listing:
        rows = [row for batch in listing.batches() for row in batch.to_pylist()]
    (row,) = rows
    assert row == {"key": b"a/bcd", "size": 5, "lastModifiedMs": NOW_MS, "version": b"bcd", "storageClass": "GLACIER"}
    # What ends one range ends the listing.
    with pytest.raises(TieredctlError, match="It is gone"):
        keys_of(LiveListing(Pages(LAYOUTS["one partition"], fails_after=20_000)))


def test_each_object_of_a_large_store_keeps_its_storage_class() -> None:
    for name, keys in LAYOUTS.items():
        with LiveListing(Pages(keys)) as listing:
            rows = [row for batch in listing.batches() for row in batch.to_pylist()]

        assert all(row["storageClass"] == ("GLACIER" if len(row["key"].decode()) % 2 else "") for row in rows), name
        assert len(rows) == len(set(keys)), name


def test_an_interrupted_listing_continues(tmp_path: Path) -> None:
    for name, keys in LAYOUTS.items():
        for fails_after in divided([0, 1_001, 9_000, 29_999]):
            file = tmp_path / f"{name} {fails_after}"
            interrupt(Pages(keys, min(fails_after, len(keys) - 1)), file)

            assert keys_of(resumed(Pages(keys), file)) == sorted(keys), (name, fails_after)


def test_a_listing_that_is_interrupted_again_and_again_ends(tmp_path: Path) -> None:
    keys, file = LAYOUTS["a folder a partition"], tmp_path / "checkpoint"
    for _ in range(3):
        interrupt(Pages(keys, fails_after=7_000), file)

    assert keys_of(resumed(Pages(keys), file)) == sorted(keys)


def test_what_was_listed_is_not_listed_again(tmp_path: Path) -> None:
    keys, file = LAYOUTS["one partition"], tmp_path / "checkpoint"
    interrupt(Pages(keys, fails_after=25_000), file)

    last = Pages(keys)
    keys_of(resumed(last, file))

    assert last.given < len(keys)
    assert "" not in last.began_at


def test_an_interruption_after_the_listing_lists_nothing_again(tmp_path: Path) -> None:
    file, keys = tmp_path / "checkpoint", ["a", "b"]
    with pytest.raises(KeyboardInterrupt), resumed(Pages(keys), file):
        raise KeyboardInterrupt

    last = Pages(keys)

    assert keys_of(resumed(last, file)) == keys
    assert last.given == 0


def test_the_file_is_gone_when_all_went_well(tmp_path: Path) -> None:
    keys_of(resumed(Pages(["a"]), tmp_path / "checkpoint"))

    assert list(tmp_path.iterdir()) == []


def refusal(listing: ResumableListing) -> tuple[str, str]:
    with pytest.raises(TieredctlError) as raised:
        keys_of(listing)
    return raised.value.code, raised.value.message


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """One of a listing that was interrupted."""
    file = tmp_path / "checkpoint"
    interrupt(Pages(["a", "b"], fails_after=1), file)
    return file


def test_another_stores_checkpoint_and_one_older_than_the_age_floor_are_refused(checkpoint: Path) -> None:
    assert refusal(resumed(Pages(["a"]), checkpoint, identity="s3://other"))[0] == "checkpoint-unusable"
    assert refusal(resumed(Pages(["a"]), checkpoint, now_ms=NOW_MS + DAY_MS + 1))[0] == "checkpoint-unusable"
    assert keys_of(resumed(Pages(["a", "b"]), checkpoint, now_ms=NOW_MS + DAY_MS)) == ["a", "b"]


def test_a_checkpoint_in_use_is_locked(checkpoint: Path) -> None:
    with resumed(Pages(["a"]), checkpoint):
        assert refusal(resumed(Pages(["a"]), checkpoint))[0] == "locked"


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("my notes, which are longer than the header of a database has to be, and no database at all" * 9)
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    before = text.read_bytes(), database.read_bytes()

    codes = [refusal(resumed(Pages(["a"]), file))[0] for file in (text, database)]

    assert codes == ["checkpoint-unusable"] * 2
    assert (text.read_bytes(), database.read_bytes()) == before


def test_a_checkpoint_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    assert refusal(resumed(Pages(["a"]), tmp_path / "missing" / "checkpoint"))[0] == "unwritable"


@settings(max_examples=examples(100))
@given(at=st.floats(0, 1, exclude_max=True), noise=st.binary(min_size=1, max_size=40))
def test_a_damaged_checkpoint_never_names_an_object_that_is_not_there(at: float, noise: bytes) -> None:
    keys = ["a", "b", "c"]
    with TemporaryDirectory() as folder:
        file = Path(folder, "checkpoint")
        interrupt(Pages(keys, fails_after=2), file)
        data = bytearray(file.read_bytes())
        start = int(at * len(data))
        data[start : start + len(noise)] = noise
        file.write_bytes(data)

        with suppress(TieredctlError):
            assert set(keys_of(resumed(Pages(keys), file))) <= set(keys)


@given(low=st.text(max_size=9), high=st.none() | st.text(max_size=9))
def test_a_key_between_two_is_between_them(low: str, high: str | None) -> None:
    between = key_between(low, high)

    assert between is None or (low < between and (high is None or between < high))


@given(keys=st.sets(st.text("ab/0é", max_size=8), min_size=1), data=st.data())
def test_a_division_has_a_key_in_its_second_half_and_none_after_its_end(keys: set[str], data: st.DataObject) -> None:
    low = data.draw(st.sampled_from(sorted(keys)))
    high = data.draw(st.none() | st.sampled_from(sorted(keys)))
    inside = [key for key in keys if low < key and (high is None or key <= high)]

    found = division(low, high, lambda edge: min((key for key in keys if key > edge), default=None))

    if found is not None:
        assert any(found.edge < key for key in inside)
        assert all(found.last is None or key <= found.last for key in inside)
        assert low < found.edge


def test_a_checkpoint_of_another_release_is_refused_before_anything_is_listed(tmp_path: Path) -> None:
    file, store = tmp_path / "checkpoint", Pages(LAYOUTS["one partition"])
    interrupt(Pages(LAYOUTS["one partition"], fails_after=20_000), file)
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 0")

    with pytest.raises(TieredctlError, match="another release of tieredctl wrote it") as raised:
        keys_of(resumed(store, file))

    assert raised.value.code == "checkpoint-unusable"
    assert store.given == 0


def test_a_checkpoint_with_other_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    checkpoint = ListingCheckpoint(file, "memory:", NOW_MS)
    (everything,) = checkpoint.unlisted()
    batch = pa.RecordBatch.from_pydict({"key": [b"a"]})
    checkpoint.add(everything.number, "a", batch, "a")
    checkpoint.finish(everything.number)
    checkpoint.close()

    with pytest.raises(TieredctlError, match="other columns") as raised:
        keys_of(resumed(Pages([]), file))

    assert raised.value.code == "checkpoint-unusable"

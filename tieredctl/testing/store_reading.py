"""What every store does that is only read (`tieredctl.ports.object_store.ObjectStore`)."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import ObjectStore

StoreWith = Callable[[Mapping[str, bytes]], ObjectStore]
"""Makes a store that holds these objects and no others."""

OBJECTS = {
    "orders-0/1.log": b"0123456789",
    "orders-0/1.index": b"",
    "orders-0/2.log": b"abc",
    "orders-0-audit/1.log": b"xy",
    "orders-01/1.log": b"z",
    "top": b"t",
}
"""What the store of most tests holds."""
ABSENT = (
    "orders-0/3.log",
    "orders-0",
    "orders-0/",
    "orders-0/1.log/more",
    "",
    "/",
    "/top",
    "orders-0//1.log",
    "./top",
    "orders-0/../top",
    "..",
    "t\0p",
    "\ud800",
    "n" * 300,
)
"""Keys under which it has no object."""
PREFIXES = {
    "orders-0/": ["orders-0/1.index", "orders-0/1.log", "orders-0/2.log"],
    "orders-0/1": ["orders-0/1.index", "orders-0/1.log"],
    "t": ["top"],
    "top": ["top"],
    "orders-0/1.log/": [],
    "gone/0": [],
    "/": [],
    "orders-0/../t": [],
    "orders-0//": [],
    "\ud800": [],
}
"""Each with the keys that begin with it."""
STARTS = {
    "orders-0/2.log": ["orders-01/1.log", "top"],
    "orders-0/1.z": ["orders-0/2.log", "orders-01/1.log", "top"],
    "orders-0/1.log": ["orders-0/2.log", "orders-01/1.log", "top"],
    "orders-0/2.zzz/9": ["orders-01/1.log", "top"],
    "orders-00": ["orders-01/1.log", "top"],
    "top": [],
}
"""Each with the keys after it: a key itself, or none that there is."""
_SLICE_ENDS = (0, 3, 4, 9, 10, 11, 1 << 40)
_FEWER = max(1, settings.default.max_examples // 4) if settings.default else 25
_FUNCTION_SCOPED, _INHERITED = HealthCheck.function_scoped_fixture, HealthCheck.differing_executors


def keys_of(store: ObjectStore, prefix: str = "", start_after: str = "") -> list[str]:
    """The keys that a listing has, in its order."""
    return [stored.key for stored in store.list(prefix, start_after)]


@contextmanager
def refused(*codes: str) -> Iterator[None]:
    """Fails unless what is done meanwhile raises TieredctlError with one of the codes."""
    with pytest.raises(TieredctlError) as raised:
        yield
    assert raised.value.code in codes


class StoreReadingContract:
    """To be inherited by the tests of a store, which have a fixture `store_with`."""

    @pytest.fixture
    def store(self, store_with: StoreWith) -> ObjectStore:
        """One with OBJECTS."""
        return store_with(OBJECTS)

    @pytest.fixture
    def absent_keys(self) -> Collection[str]:
        """Keys that the store has no object for. A server that takes one of ABSENT for another key leaves it out."""
        return ABSENT

    def test_an_empty_store_lists_nothing(self, store_with: StoreWith) -> None:
        assert list(store_with({}).list()) == []

    def test_a_listing_names_every_object_with_its_size(self, store: ObjectStore) -> None:
        sizes = {stored.key: stored.size for stored in store.list()}

        assert sizes == {key: len(data) for key, data in OBJECTS.items()}

    def test_a_listing_is_in_the_order_of_the_keys_bytes(self, store: ObjectStore) -> None:
        # "-" and "." sort before "/", digits after it: a folder's own name does not say where its objects come.
        assert keys_of(store) == [
            "orders-0-audit/1.log",
            "orders-0/1.index",
            "orders-0/1.log",
            "orders-0/2.log",
            "orders-01/1.log",
            "top",
        ]

    def test_the_order_is_that_of_utf_8_where_utf_16_differs(self, store_with: StoreWith) -> None:
        keys = ["\U0001f600", "\ufb01", "é", "z"]

        assert keys_of(store_with(dict.fromkeys(keys, b""))) == ["z", "é", "\ufb01", "\U0001f600"]

    def test_a_prefix_is_compared_as_text(self, store: ObjectStore) -> None:
        assert {prefix: keys_of(store, prefix) for prefix in PREFIXES} == PREFIXES

    def test_a_prefix_does_not_stop_at_a_folder(self, store: ObjectStore) -> None:
        assert keys_of(store, "orders-0") == [key for key in keys_of(store) if key.startswith("orders-0")]

    def test_a_listing_can_start_after_any_text(self, store: ObjectStore) -> None:
        assert {start: keys_of(store, start_after=start) for start in STARTS} == STARTS

    @settings(suppress_health_check=[_FUNCTION_SCOPED, _INHERITED], max_examples=_FEWER, deadline=None)
    @given(data=st.data())
    def test_prefix_and_start_cut_the_listing_as_they_would_cut_its_text(
        self, store_with: StoreWith, data: st.DataObject
    ) -> None:
        folder = st.text("ab-0é", min_size=1, max_size=3)
        # A file's name ends as no folder's does, so that no key is wanted as both.
        key = st.builds(lambda folders, name: "/".join([*folders, name + "."]), st.lists(folder, max_size=3), folder)
        keys = data.draw(st.sets(key, max_size=12))
        cut = st.builds(lambda whole, length: whole[:length], key, st.integers(0, 8))
        prefix, start_after = data.draw(cut), data.draw(cut)

        listed = keys_of(store_with(dict.fromkeys(keys, b"")), prefix, start_after)

        wanted = [key for key in keys if key.startswith(prefix) and key.encode() > start_after.encode()]
        assert listed == sorted(wanted, key=str.encode)

    def test_pages_that_start_after_each_other_make_the_whole_listing(self, store: ObjectStore) -> None:
        pages: list[str] = []
        while page := [stored.key for stored in islice(store.list(start_after=pages[-1] if pages else ""), 2)]:
            pages += page

        assert pages == keys_of(store)

    def test_a_listing_begins_before_it_is_asked_for_all(self, store: ObjectStore) -> None:
        assert next(store.list()).key == "orders-0-audit/1.log"

    def test_over_other_connections_it_is_the_same_store(self, store: ObjectStore) -> None:
        other = store.reconnected()

        assert other.url == store.url
        assert list(other.list()) == list(store.list())
        assert all(other.read(stored.key) == store.read(stored.key) for stored in islice(store.list(), 3))

    def test_head_says_what_the_listing_says(self, store: ObjectStore) -> None:
        assert [store.head(key) for key in keys_of(store)] == list(store.list())

    def test_head_of_no_object_is_none(self, store: ObjectStore, absent_keys: Collection[str]) -> None:
        assert {key: store.head(key) for key in absent_keys} == dict.fromkeys(absent_keys)

    def test_reading_no_object_is_an_error_with_a_name(self, store: ObjectStore, absent_keys: Collection[str]) -> None:
        for key in absent_keys:
            with refused("object-missing"):
                pytest.fail(f"{key!r} has bytes: {store.read(key)!r}")

    def test_streaming_no_object_is_an_error_when_it_begins(
        self, store: ObjectStore, absent_keys: Collection[str]
    ) -> None:
        for key in absent_keys:
            pieces = store.stream(key)
            with refused("object-missing"):
                pytest.fail(f"{key!r} has bytes: {next(pieces)!r}")

    def test_read_gives_a_whole_object(self, store: ObjectStore) -> None:
        assert {key: store.read(key) for key in OBJECTS} == OBJECTS

    def test_read_cuts_as_a_slice_does(self, store: ObjectStore) -> None:
        key, ranges = "orders-0/1.log", [(start, end) for start in _SLICE_ENDS for end in (None, *_SLICE_ENDS)]

        read = {one: store.read(key, *one) for one in ranges}

        assert read == {(start, end): OBJECTS[key][start:end] for start, end in ranges}

    def test_stream_gives_the_rest_in_pieces(self, store: ObjectStore) -> None:
        key = "orders-0/1.log"
        for start in (0, 4, 10, 99):
            for chunk_size in (1, 3, 10, 4096):
                pieces = list(store.stream(key, start, chunk_size))

                assert b"".join(pieces) == OBJECTS[key][start:], (start, chunk_size)
                assert all(0 < len(piece) <= chunk_size for piece in pieces), (start, chunk_size)

    def test_an_empty_object_streams_no_piece(self, store: ObjectStore) -> None:
        assert list(store.stream("orders-0/1.index")) == []

    def test_a_stream_may_be_left_before_its_end(self, store: ObjectStore) -> None:
        assert next(store.stream("orders-0/1.log", chunk_size=2)) == b"01"

    def test_a_pickled_store_holds_the_same(self, store: ObjectStore) -> None:
        copy: ObjectStore = pickle.loads(pickle.dumps(store))

        assert copy.url == store.url
        assert list(copy.list()) == list(store.list())
        assert copy.read("orders-0/1.log") == OBJECTS["orders-0/1.log"]

    def test_a_store_with_a_clock_of_its_own_tells_the_time(self, store: ObjectStore) -> None:
        before_ms, told_ms, after_ms = int(time.time()) * 1_000, store.time_ms(), int(time.time() * 1_000)

        assert told_ms is None or before_ms - 1_000 <= told_ms <= after_ms

"""What every object store promises (tieredctl.ports.object_store), tried on each of them."""

from __future__ import annotations

import pickle
import time
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.storage.answers import keys_of
from tests.storage.conftest import SERVERS, STORES, StoreWith
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import ObjectStore

OBJECTS = {
    "orders-0/1.log": b"0123456789",
    "orders-0/1.index": b"",
    "orders-0/2.log": b"abc",
    "orders-0-audit/1.log": b"xy",
    "orders-01/1.log": b"z",
    "top": b"t",
}
NO_OBJECT = [
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
]
MISREAD = {
    # It makes paths of keys: it drops empty parts and "." and goes up at "..".
    "versitygw": {"/", "/top", "orders-0//1.log", "./top", "orders-0/../top", "..", "t\0p"},
    # It drops the connection.
    "gcp-storage-emulator": {"orders-0/../top", ".."},
}
"""Keys that a server takes for others, or fails at, though its model would say that there is no such object."""
EACH_STORE_AND_NO_OBJECT = pytest.mark.parametrize(
    ("store_kind", "key"),
    [(kind, key) for kind in STORES for key in NO_OBJECT if key not in MISREAD.get(kind, ())],
)


@pytest.fixture(scope="session")
def filled_stores() -> dict[str, ObjectStore]:
    """A store of each kind that was asked for, with OBJECTS, for tests that only look."""
    return {}


@pytest.fixture
def store(store_kind: str, store_with: StoreWith, filled_stores: dict[str, ObjectStore]) -> ObjectStore:
    if store_kind not in SERVERS:
        return store_with(OBJECTS)
    if store_kind not in filled_stores:
        filled_stores[store_kind] = store_with(OBJECTS)
    return filled_stores[store_kind]


def utf_8(key: str) -> bytes:
    return key.encode("utf-8")


def test_an_empty_store_lists_nothing(store_with: StoreWith) -> None:
    assert list(store_with({}).list()) == []


def test_a_listing_names_every_object_with_its_size(store: ObjectStore) -> None:
    sizes = {stored.key: stored.size for stored in store.list()}

    assert sizes == {key: len(data) for key, data in OBJECTS.items()}


def test_a_listing_is_in_the_order_of_the_keys_bytes(store: ObjectStore) -> None:
    # "-" and "." sort before "/", digits after it: a folder's own name does not say where its objects come.
    assert keys_of(store) == [
        "orders-0-audit/1.log",
        "orders-0/1.index",
        "orders-0/1.log",
        "orders-0/2.log",
        "orders-01/1.log",
        "top",
    ]


def test_the_order_is_that_of_utf_8_where_utf_16_differs(store_with: StoreWith) -> None:
    keys = ["\U0001f600", "\ufb01", "é", "z"]

    assert keys_of(store_with(dict.fromkeys(keys, b""))) == ["z", "é", "\ufb01", "\U0001f600"]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        pytest.param("orders-0/", ["orders-0/1.index", "orders-0/1.log", "orders-0/2.log"], id="a folder"),
        pytest.param("orders-0/1", ["orders-0/1.index", "orders-0/1.log"], id="part of a name in a folder"),
        pytest.param("t", ["top"], id="part of a name"),
        pytest.param("top", ["top"], id="a whole key"),
        pytest.param("orders-0/1.log/", [], id="below an object"),
        pytest.param("gone/0", [], id="in a folder that is not there"),
        pytest.param("/", [], id="a root"),
        pytest.param("orders-0/../t", [], id="a way out of a folder"),
        pytest.param("orders-0//", [], id="a folder without a name"),
    ],
)
def test_a_prefix_is_compared_as_text(store: ObjectStore, prefix: str, expected: list[str]) -> None:
    assert keys_of(store, prefix) == expected


def test_a_prefix_does_not_stop_at_a_folder(store: ObjectStore) -> None:
    assert keys_of(store, "orders-0") == [key for key in keys_of(store) if key.startswith("orders-0")]


@pytest.mark.parametrize(
    ("start_after", "expected"),
    [
        pytest.param("orders-0/2.log", ["orders-01/1.log", "top"], id="a key, which is left out"),
        pytest.param("orders-0/1.z", ["orders-0/2.log", "orders-01/1.log", "top"], id="no key, in a folder"),
        pytest.param("orders-0/1.log", ["orders-0/2.log", "orders-01/1.log", "top"], id="a key in a folder's middle"),
        pytest.param("orders-0/2.zzz/9", ["orders-01/1.log", "top"], id="a folder that is not there"),
        pytest.param("orders-00", ["orders-01/1.log", "top"], id="between folders"),
        pytest.param("top", [], id="the last key"),
    ],
)
def test_a_listing_can_start_behind_any_text(store: ObjectStore, start_after: str, expected: list[str]) -> None:
    assert keys_of(store, start_after=start_after) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))
@given(data=st.data())
def test_prefix_and_start_cut_the_listing_as_they_would_cut_its_text(
    store_with: StoreWith, data: st.DataObject
) -> None:
    folder = st.text("ab-0é", min_size=1, max_size=3)
    # A file's name ends as no folder's does, so that no key is wanted as both.
    key = st.builds(lambda folders, name: "/".join([*folders, name + "."]), st.lists(folder, max_size=3), folder)
    keys = data.draw(st.sets(key, max_size=12))
    cut = st.builds(lambda whole, length: whole[:length], key, st.integers(0, 8))
    prefix, start_after = data.draw(cut), data.draw(cut)

    listed = keys_of(store_with(dict.fromkeys(keys, b"")), prefix, start_after)

    wanted = [key for key in keys if key.startswith(prefix) and utf_8(key) > utf_8(start_after)]
    assert listed == sorted(wanted, key=utf_8)


def test_no_key_has_a_prefix_that_no_key_can_have(store: ObjectStore) -> None:
    assert keys_of(store, prefix="\ud800") == []


def test_pages_that_start_behind_each_other_make_the_whole_listing(store: ObjectStore) -> None:
    pages: list[str] = []
    while page := [stored.key for stored in islice(store.list(start_after=pages[-1] if pages else ""), 2)]:
        pages += page

    assert pages == keys_of(store)


def test_a_listing_begins_before_it_is_asked_for_all(store: ObjectStore) -> None:
    assert next(store.list()).key == "orders-0-audit/1.log"


def test_over_other_connections_it_is_the_same_store(store: ObjectStore) -> None:
    other = store.reconnected()

    assert other.url == store.url
    assert list(other.list()) == list(store.list())
    assert all(other.read(stored.key) == store.read(stored.key) for stored in islice(store.list(), 3))


def test_head_says_what_the_listing_says(store: ObjectStore) -> None:
    assert [store.head(key) for key in keys_of(store)] == list(store.list())


@EACH_STORE_AND_NO_OBJECT
def test_head_of_no_object_is_none(store: ObjectStore, key: str) -> None:
    assert store.head(key) is None


@EACH_STORE_AND_NO_OBJECT
def test_reading_no_object_is_an_error_with_a_name(store: ObjectStore, key: str) -> None:
    with pytest.raises(TieredctlError) as raised:
        store.read(key)

    assert raised.value.kind.code == "object-missing"


@EACH_STORE_AND_NO_OBJECT
def test_streaming_no_object_is_an_error_when_it_begins(store: ObjectStore, key: str) -> None:
    pieces = store.stream(key)

    with pytest.raises(TieredctlError) as raised:
        next(pieces)

    assert raised.value.kind.code == "object-missing"


def test_read_gives_a_whole_object(store: ObjectStore) -> None:
    assert {key: store.read(key) for key in OBJECTS} == OBJECTS


@pytest.mark.parametrize("start", [0, 3, 9, 10, 11, 1 << 40])
@pytest.mark.parametrize("end", [None, 0, 3, 4, 10, 11, 1 << 40])
def test_read_cuts_as_a_slice_does(store: ObjectStore, start: int, end: int | None) -> None:
    assert store.read("orders-0/1.log", start, end) == OBJECTS["orders-0/1.log"][start:end]


@pytest.mark.parametrize("chunk_size", [1, 3, 10, 4096])
@pytest.mark.parametrize("start", [0, 4, 10, 99])
def test_stream_gives_the_rest_in_pieces(store: ObjectStore, start: int, chunk_size: int) -> None:
    pieces = list(store.stream("orders-0/1.log", start, chunk_size))

    assert b"".join(pieces) == OBJECTS["orders-0/1.log"][start:]
    assert all(0 < len(piece) <= chunk_size for piece in pieces)


def test_an_empty_object_streams_no_piece(store: ObjectStore) -> None:
    assert list(store.stream("orders-0/1.index")) == []


def test_a_stream_may_be_left_before_its_end(store: ObjectStore) -> None:
    assert next(store.stream("orders-0/1.log", chunk_size=2)) == b"01"


def test_a_pickled_store_holds_the_same(store: ObjectStore) -> None:
    copy: ObjectStore = pickle.loads(pickle.dumps(store))

    assert copy.url == store.url
    assert list(copy.list()) == list(store.list())
    assert copy.read("orders-0/1.log") == OBJECTS["orders-0/1.log"]


def test_a_store_with_a_clock_of_its_own_tells_the_time(store: ObjectStore) -> None:
    before_ms, told_ms, after_ms = int(time.time()) * 1_000, store.time_ms(), int(time.time() * 1_000)

    assert (told_ms is None) == store.url.startswith(("file:", "memory:"))
    assert told_ms is None or before_ms - 1_000 <= told_ms <= after_ms

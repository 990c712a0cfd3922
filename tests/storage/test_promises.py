"""What every object store promises (tieredctl.ports.object_store), tried on each of them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.storage.conftest import SERVERS, StoreWith
from tieredctl.ports.object_store import ObjectStore
from tieredctl.testing.store_reading import ABSENT, OBJECTS, StoreReadingContract

MISREAD = {
    # It makes paths of keys: it drops empty parts and "." and goes up at "..".
    "versitygw": {"/", "/top", "orders-0//1.log", "./top", "orders-0/../top", "..", "t\0p"},
    # It drops the connection.
    "gcp-storage-emulator": {"orders-0/../top", ".."},
}
"""Keys that a server takes for others, or fails at, though its model would say that there is no such object."""


@pytest.fixture(scope="session")
def filled_stores() -> dict[str, ObjectStore]:
    """A store of each kind that was asked for, with OBJECTS, for tests that only look."""
    return {}


class TestEveryStore(StoreReadingContract):
    @pytest.fixture
    def store(self, store_kind: str, store_with: StoreWith, filled_stores: dict[str, ObjectStore]) -> ObjectStore:
        if store_kind not in SERVERS:
            return store_with(OBJECTS)
        if store_kind not in filled_stores:
            filled_stores[store_kind] = store_with(OBJECTS)
        return filled_stores[store_kind]

    @pytest.fixture
    def absent_keys(self, store_kind: str) -> Collection[str]:
        return [key for key in ABSENT if key not in MISREAD.get(store_kind, ())]

    def test_only_servers_have_a_clock(self, store: ObjectStore, store_kind: str) -> None:
        assert (store.time_ms() is not None) == (store_kind in SERVERS)

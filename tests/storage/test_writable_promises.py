"""What every store promises that can be changed (tieredctl.ports.object_store), tried on each of them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.storage.conftest import SERVERS, BucketWith, WritableWith
from tieredctl.ports.object_store import MOST_DELETED_AT_ONCE, Capability
from tieredctl.storage.registry import open_writable_store
from tieredctl.testing.store_changes import IMPOSSIBLE, ODD, StoreChangesContract, head

CAPABILITIES = {
    "file": set(Capability) - {Capability.MULTIPART_UPLOADS},
    "memory": set(Capability) - {Capability.MULTIPART_UPLOADS},
    # Takes a copy's condition, and does not keep it.
    "moto": {
        Capability.CONDITIONAL_WRITE,
        Capability.CONDITIONAL_UPLOAD,
        Capability.CONDITIONAL_DELETE,
        Capability.MULTIPART_UPLOADS,
    },
    "versitygw": set(Capability) - {Capability.MODIFICATION_TIMES},
    # Takes conditions of copies and deletions, and does not keep them.
    "fake-gcs-server": {Capability.CONDITIONAL_WRITE, Capability.CONDITIONAL_UPLOAD},
    # Takes all conditions, and keeps none.
    "gcp-storage-emulator": set[Capability](),
    "azurite": set(Capability) - {Capability.MODIFICATION_TIMES, Capability.MULTIPART_UPLOADS},
}
SLOW_TO_FILL = ("moto", "gcp-storage-emulator", "azurite")


class TestEveryStore(StoreChangesContract):
    @pytest.fixture
    def keeps_writers_apart(self, store_kind: str) -> bool:
        # It looks and writes in two steps, and lets a second writer in between on a busy machine.
        return store_kind != "moto"

    @pytest.fixture
    def impossible_keys(self, store_kind: str) -> Collection[str]:
        # Azure takes a backslash for a slash.
        more = ("a\\b",) if store_kind == "azurite" else ()
        return () if store_kind == "memory" else (*IMPOSSIBLE, *more)

    @pytest.fixture
    def odd_keys(self, store_kind: str) -> Collection[str]:
        return [key.replace("\\", "") for key in ODD] if store_kind == "azurite" else ODD

    @pytest.fixture
    def largest_batch(self, store_kind: str) -> int:
        return 20 if store_kind in SLOW_TO_FILL else MOST_DELETED_AT_ONCE

    def test_a_store_says_what_it_can(self, store_kind: str, writable_with: WritableWith) -> None:
        assert writable_with({}).capabilities == CAPABILITIES[store_kind]


@pytest.mark.parametrize("store_kind", ["moto", "versitygw", "fake-gcs-server"])
def test_a_server_keeps_a_checksum_of_a_copy_and_its_original(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"0123456789"})
    store.copy(head(store, "a"), "copy")

    kept, of_copy = store.checksums(head(store, "a")), store.checksums(head(store, "copy"))

    assert kept.items() & of_copy.items()


@pytest.mark.parametrize("store_kind", SERVERS)
def test_a_copy_keeps_content_type_and_metadata(bucket_with: BucketWith) -> None:
    place = bucket_with({})
    place.put("a.log", b"1", content_type="application/x-kafka", segment="7")
    store = open_writable_store(place.url, place.options)

    store.copy(head(store, "a.log"), "b.log")

    assert place.described("b.log") == ("application/x-kafka", {"segment": "7"})

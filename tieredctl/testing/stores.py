"""The contract of a kind of store that a package brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tieredctl.ports.object_store import Versioning, WritableObjectStore
from tieredctl.ports.store_kinds import STORES, Address, StoreKind, store_kind
from tieredctl.storage.registry import open_store, open_writable_store
from tieredctl.testing.store_changes import StoreChangesContract, WritableWith
from tieredctl.testing.store_reading import StoreReadingContract, StoreWith, keys_of, refused


class StoreContract(StoreReadingContract, StoreChangesContract):
    """To be inherited by the tests of a store, which have a fixture `new_url`: a function that gives the URL of an
    empty store, each time another."""

    @pytest.fixture
    def options(self) -> Mapping[str, str]:
        """The `--store-option`s with which these URLs are opened."""
        return {}

    @pytest.fixture
    def writable_with(self, new_url: Callable[[], str], options: Mapping[str, str]) -> WritableWith:
        """Stores that are opened as a command opens them that changes something."""

        def made(objects: Mapping[str, bytes]) -> WritableObjectStore:
            store = open_writable_store(new_url(), options)
            for key, data in objects.items():
                store.write(key, data)
            return store

        return made

    @pytest.fixture
    def store_with(self, writable_with: WritableWith, options: Mapping[str, str]) -> StoreWith:
        """The same, opened as a command opens them that changes nothing."""
        return lambda objects: open_store(writable_with(objects).url, options)

    @pytest.fixture
    def kind(self, new_url: Callable[[], str]) -> StoreKind:
        """What the store's package registered."""
        return store_kind(new_url())

    def test_it_is_registered_under_the_scheme_of_its_urls(self, kind: StoreKind, new_url: Callable[[], str]) -> None:
        assert STORES.load(kind.scheme) is kind
        assert kind.form.startswith(f"{kind.scheme}:")
        assert new_url().startswith(kind.begins)
        assert kind.address is not Address.NONE

    def test_it_can_do_no_more_than_its_kind(self, kind: StoreKind, writable_with: WritableWith) -> None:
        assert writable_with({}).capabilities <= kind.capabilities

    def test_its_own_url_opens_it_again(self, writable_with: WritableWith, options: Mapping[str, str]) -> None:
        store = writable_with({"a": b"1"})

        again = open_store(store.url, options)

        assert (again.url, keys_of(again)) == (store.url, ["a"])

    def test_an_option_that_its_kind_does_not_name_is_refused(self, new_url: Callable[[], str]) -> None:
        with refused("usage"):
            open_store(new_url(), {"no-such-option": "1"})

    def test_it_keeps_versions_only_if_its_kind_does(self, kind: StoreKind, writable_with: WritableWith) -> None:
        store = writable_with({"a": b"1", "b": b"2"})
        store.delete(list(store.list("a")))

        if not kind.keeps_versions:
            assert store.retention().versioning is Versioning.OFF
            assert list(store.kept_versions()) == []
            assert list(store.soft_deleted("a")) == []

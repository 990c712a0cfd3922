"""What tieredctl itself keeps in a store: copies in quarantine, and the lease of the run that changes the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.lease import FoundLease, break_lease, find_lease
from tieredctl.ops.guards.quarantine_keys import Quarantined
from tieredctl.ops.guards.store_clock import store_clock
from tieredctl.ops.orphan_removal.quarantine import copies_in_quarantine
from tieredctl.ports.object_store import StoredObject, WritableObjectStore
from tieredctl.wiring.places import StorePlace


class OpenedQuarantine(NamedTuple):
    """The copies in a store, each with what its key says, by ascending key. Streams."""

    url: str
    copies: Iterator[tuple[StoredObject, Quarantined]]


def opened_quarantine(place: StorePlace) -> OpenedQuarantine:
    """Raises TieredctlError if the store cannot be opened; iterating raises it if the store does not answer."""
    store = place.open_store()
    return OpenedQuarantine(store.url, copies_in_quarantine(store))


@dataclass(frozen=True, slots=True)
class StoreLease:
    """The lease of a store, as it was found."""

    found: FoundLease | None
    """None if no run ever took it."""
    is_held: bool
    _store: WritableObjectStore

    @property
    def url(self) -> str:
        """The store's."""
        return self._store.url

    def free(self) -> None:
        """Breaks the lease. Raises TieredctlError `locked` if its holder renewed it since it was found."""
        if self.found is None or break_lease(self._store, self.found):
            return
        message = f"{self.found.holder} renewed the lease of {self.url} just now: that run is active."
        raise TieredctlError(ErrorCode.LOCKED, message, hint="Stop it, or wait until it ends.")


def store_lease(place: StorePlace, clock_ms: Callable[[], int]) -> StoreLease:
    """The lease of a store, which is opened for writing. Raises TieredctlError if that fails."""
    store = place.open_writable_store()
    found = find_lease(store)
    return StoreLease(found, found is not None and _is_held(store, found, clock_ms), store)


def _is_held(store: WritableObjectStore, found: FoundLease, clock_ms: Callable[[], int]) -> bool:
    """By the store's clock; if the time is uncertain, until the lease is released."""
    if found.is_released:
        return False
    try:
        return found.is_held(store_clock(store, clock_ms)())
    except TieredctlError as error:
        if error.code is not ErrorCode.CLOCK_SKEW:
            raise
        return True

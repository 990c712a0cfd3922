"""The store's time. Ages of objects and leases are by the store's clock: a host's may be days off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.own_objects import CLOCK_KEY
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore

MOST_SKEW_MS = 5 * 60_000
"""How far apart the clocks of host and store may be."""
_SECOND_MS = 1_000
"""Some stores report times in whole seconds."""


@dataclass(frozen=True, slots=True)
class StoreClock:
    """The store's time, in ms since the epoch, without asking the store again."""

    host_ms: Callable[[], int]
    ahead_ms: int
    """How far the store's clock is ahead of the host's."""

    def __call__(self) -> int:
        return self.host_ms() + self.ahead_ms


def store_clock(store: WritableObjectStore, host_ms: Callable[[], int]) -> StoreClock:
    """The store's clock, read from the time of an object that is written for this.

    Raises TieredctlError `clock-skew` if it is too far from the host's: which of the two is wrong is not known.
    """
    before_ms = host_ms()
    stored_ms = store.write(CLOCK_KEY, uuid4().hex.encode()).last_modified_ms
    return StoreClock(host_ms, _ahead_ms(store, before_ms, stored_ms, host_ms()))


def demand_common_time(store: ObjectStore, host_ms: Callable[[], int]) -> None:
    """Raises TieredctlError `clock-skew` as `store_clock` does, by a question that needs no right to write; a store
    that does not answer it is not held to it."""
    before_ms = host_ms()
    told_ms = store.time_ms()
    if told_ms is not None:
        _ahead_ms(store, before_ms, told_ms, host_ms())


def _ahead_ms(store: ObjectStore, before_ms: int, told_ms: int, after_ms: int) -> int:
    """How far the store's clock is ahead of the host's, which it was asked between `before_ms` and `after_ms`."""
    ahead_ms = 0
    if told_ms > after_ms:
        ahead_ms = told_ms - after_ms
    elif told_ms < before_ms - _SECOND_MS:
        ahead_ms = told_ms - before_ms
    if abs(ahead_ms) > MOST_SKEW_MS:
        apart = f"{abs(ahead_ms) // 60_000} minutes {'ahead of' if ahead_ms > 0 else 'behind'}"
        raise TieredctlError(ErrorCode.CLOCK_SKEW, f"The clock of {store.url} is {apart} this host's.")
    return ahead_ms

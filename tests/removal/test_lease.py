"""One run at a time changes a store, whatever the clocks of hosts and the text of a lease say."""

from __future__ import annotations

import json

import pytest

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.lease import LEASE_MS, break_lease, find_lease, lease_held
from tieredctl.ops.guards.own_objects import CLOCK_KEY, LEASE_KEY
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS, demand_common_time, store_clock
from tieredctl.ports.object_store import Capability, StoredObject
from tieredctl.storage.memory import MemoryStore

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000


class ClockedStore(MemoryStore):
    """A store with a clock of its own."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        super().__init__()
        self.now_ms = now_ms

    def clock_ms(self) -> int:
        return self.now_ms

    def time_ms(self) -> int:
        return self.now_ms // 1_000 * 1_000


class PlainStore(ClockedStore):
    """One that keeps no conditions."""

    capabilities = frozenset[Capability]()


def hold(store: ClockedStore, host_ms: int | None = None) -> None:
    with lease_held(store, "orphans apply", lambda: store.now_ms if host_ms is None else host_ms):
        pass


def put_lease(store: ClockedStore, age_ms: int, **fields: object) -> None:
    lease = {"holder": "host:1", "purpose": "orphans apply", **fields}
    store.put(LEASE_KEY, json.dumps(lease).encode(), NOW_MS - age_ms)


def code_of(store: ClockedStore, host_ms: int | None = None) -> str | None:
    try:
        hold(store, host_ms)
    except TieredctlError as error:
        return error.code
    return None


def test_how_long_a_lease_holds_is_not_for_its_text_to_say() -> None:
    cases: list[object] = [NOW_MS + 2 * DAY_MS, 10**30, -1, 1, "soon", None, True, [], NOW_MS - DAY_MS]
    for expires_ms in cases:
        young, old = ClockedStore(), ClockedStore()
        put_lease(young, LEASE_MS - 1, expiresMs=expires_ms)
        put_lease(old, LEASE_MS, expiresMs=expires_ms)
        assert (code_of(young), code_of(old)) == ("locked", None), expires_ms
    # A lease that cannot be read holds as long as any.
    others: list[bytes] = [b"", b"[]", b"\xff", b"[" * 100_000, b'{"holder": 1, "expiresMs": 1e400}']
    for data in others:
        young, old = ClockedStore(), ClockedStore()
        young.put(LEASE_KEY, data, NOW_MS)
        old.put(LEASE_KEY, data, NOW_MS - LEASE_MS)
        assert (code_of(young), code_of(old)) == ("locked", None), data


def test_whoevers_clock_is_off_by_little_a_lease_is_free_once_released_and_only_then() -> None:
    # A released lease is free at once whoevers clock wrote it.
    cases: list[int] = [-MOST_SKEW_MS, 0, MOST_SKEW_MS]
    for skew_ms in cases:
        store = ClockedStore()
        hold(store, NOW_MS + skew_ms)
        assert code_of(store, NOW_MS - skew_ms) is None, skew_ms
    # A lease that is held is not taken by a host whose clock is off.
    others: list[int] = [-MOST_SKEW_MS, MOST_SKEW_MS]
    for skew_ms in others:
        store = ClockedStore()
        put_lease(store, 60_000)
        assert code_of(store, NOW_MS + skew_ms) == "locked", skew_ms


@pytest.mark.parametrize("skew_ms", [-2 * DAY_MS, -MOST_SKEW_MS - 2_000, MOST_SKEW_MS + 2_000, 2 * DAY_MS])
@pytest.mark.parametrize("kind", [ClockedStore, PlainStore])
def test_nothing_is_changed_where_host_and_store_disagree_about_the_time(
    skew_ms: int, kind: type[ClockedStore]
) -> None:
    store = kind()

    with (
        pytest.raises(TieredctlError) as caught,
        lease_held(store, "orphans purge", lambda: NOW_MS + skew_ms, unguarded=True),
    ):
        pytest.fail("it went on")

    assert caught.value.code == "clock-skew"
    assert [one.key for one in store.list()] == [CLOCK_KEY]


def test_a_reader_notices_it_as_well_and_writes_nothing() -> None:
    store = ClockedStore()

    for skew_ms in (-2 * DAY_MS, -MOST_SKEW_MS - 2_000, MOST_SKEW_MS + 2_000, 2 * DAY_MS):
        with pytest.raises(TieredctlError) as caught:
            demand_common_time(store, lambda skew_ms=skew_ms: NOW_MS + skew_ms)  # type: ignore[misc]
        assert caught.value.code is ErrorCode.CLOCK_SKEW, skew_ms
    for skew_ms in (-MOST_SKEW_MS, 0, MOST_SKEW_MS):
        demand_common_time(store, lambda skew_ms=skew_ms: NOW_MS + skew_ms)  # type: ignore[misc]

    assert list(store.list()) == []


def test_a_holder_goes_by_the_stores_time() -> None:
    store = ClockedStore()
    with lease_held(store, "orphans purge", lambda: NOW_MS + 240_000) as lease:
        now_ms = lease.clock()
    assert now_ms == NOW_MS
    # A store without a clock of its own is not held to it.
    demand_common_time(MemoryStore(), lambda: NOW_MS)
    # A store that tells whole seconds is not behind.
    assert store_clock(ClockedStore(NOW_MS - 999), lambda: NOW_MS).ahead_ms == 0


def test_a_lease_shows_who_holds_it() -> None:
    store = ClockedStore()

    with lease_held(store, "orphans apply", lambda: NOW_MS):
        held = find_lease(store)
    released = find_lease(store)

    assert held is not None
    assert released is not None
    assert (held.purpose, held.since_ms, held.until_ms) == ("orphans apply", NOW_MS, NOW_MS + LEASE_MS)
    assert (held.is_held(NOW_MS), released.is_held(NOW_MS), released.holder) == (True, False, held.holder)


def test_a_lease_that_was_broken_is_lost_and_one_that_was_renewed_is_not_broken() -> None:
    # Who held a lease that was broken can no longer renew it.
    store = ClockedStore()
    with lease_held(store, "orphans apply", lambda: NOW_MS) as lease:
        held = find_lease(store)
        assert held is not None
        assert break_lease(store, held)
        with pytest.raises(TieredctlError) as caught:
            lease.renew()
    assert caught.value.code == "lease-lost"
    # A lease that was renewed since it was looked at is not broken.
    store = ClockedStore()
    with lease_held(store, "orphans apply", lambda: NOW_MS) as lease:
        held = find_lease(store)
        lease.renew()
        assert held is not None
        assert not break_lease(store, held)
        lease.renew()


class FullStore(ClockedStore):
    """A store that can take no more, and lets things go."""

    is_full = False

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        if self.is_full:
            raise TieredctlError(ErrorCode.UNWRITABLE, "No space left on device.")
        return super().replace(current, data)


def test_a_lease_that_cannot_be_written_any_more_is_not_a_hindrance_once_its_run_ended() -> None:
    store = FullStore()
    with lease_held(store, "partition remove", lambda: NOW_MS):
        store.is_full = True

    assert code_of(store) is None

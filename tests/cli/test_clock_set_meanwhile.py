"""A host's clock that is set while a command works: nothing is older by it, and no lease has run out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cli.crashed_cluster import ENOUGH, CrashedClusterOnDisk, without_lease, without_own
from tieredctl.errors import ExitCode
from tieredctl.ops.guards import store_clock
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.guards.own_objects import CLOCK_KEY, LEASE_KEY
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process import steady_time
from tieredctl.storage.file import FileStore

DAYS_MS = 3 * 24 * 3_600_000
AGED_A_DAY = ("--older-than", "24h", *ENOUGH)


@dataclass
class HostClock:
    """One that is set by `ahead_ms` from the right time."""

    right_ns: Callable[[], int]
    ahead_ms: int = 0

    def time_ns(self) -> int:
        return self.right_ns() + self.ahead_ms * 1_000_000


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> HostClock:
    host = HostClock(time.time_ns)
    monkeypatch.setattr("time.time_ns", host.time_ns)
    return host


def set_once_written(patch: pytest.MonkeyPatch, host: HostClock, key: str, ahead_ms: int) -> None:
    """Sets the clock right after an object is written."""

    def then_set(name: str) -> None:
        write = getattr(FileStore, name)

        def written(store: FileStore, at: Any, data: bytes) -> Any:
            stored = write(store, at, data)
            if key in (at, getattr(at, "key", None)):
                host.ahead_ms = ahead_ms
            return stored

        patch.setattr(FileStore, name, written)

    for name in ("write", "put_if_absent", "replace"):
        then_set(name)


def written_now(cluster: CrashedClusterOnDisk) -> None:
    """All of a store's objects are as young as can be."""
    for file in cluster.bucket.rglob("*.*"):
        os.utime(file)


@pytest.mark.parametrize("key", [CLOCK_KEY, LEASE_KEY])
def test_copies_that_came_into_quarantine_just_now_are_not_purged_as_old(
    quarantined: CrashedClusterOnDisk, host: HostClock, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    before = without_lease(quarantined.objects())
    set_once_written(monkeypatch, host, key, DAYS_MS)

    outcome = quarantined.purge(*AGED_A_DAY, "-o", "json")

    assert (host.ahead_ms, outcome.exit_code, outcome.document()["summary"]["done"]) == (DAYS_MS, ExitCode.CLEAN, 0)
    assert without_lease(quarantined.objects()) == before


def test_young_objects_that_a_wrong_clock_let_be_planned_are_not_removed_as_old(
    cluster: CrashedClusterOnDisk, host: HostClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_now(cluster)
    before = cluster.objects()
    host.ahead_ms = DAYS_MS
    assert cluster.plan(*ENOUGH).exit_code == ExitCode.CLEAN
    host.ahead_ms = 0
    set_once_written(monkeypatch, host, LEASE_KEY, DAYS_MS)

    outcome = cluster.apply("-o", "json")

    summary = outcome.document()["summary"]
    assert (host.ahead_ms, outcome.exit_code, summary["done"]) == (DAYS_MS, ExitCode.INCOMPLETE, 0)
    assert without_own(cluster.objects()) == before


def test_young_objects_are_not_planned_as_old_by_a_clock_that_is_right_when_the_store_is_asked(
    cluster: CrashedClusterOnDisk, host: HostClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_now(cluster)
    host.ahead_ms = DAYS_MS

    def once_it_is_right(store: ObjectStore, host_ms: Callable[[], int]) -> None:
        host.ahead_ms = 0
        demand_common_time(store, host_ms)

    monkeypatch.setattr(store_clock, "demand_common_time", once_it_is_right)
    monkeypatch.setattr(FileStore, "time_ms", lambda _: host.right_ns() // 1_000_000)

    outcome = cluster.plan(*ENOUGH)

    assert (host.ahead_ms, outcome.exit_code, cluster.plan_file.exists()) == (0, ExitCode.FAILURE, False)


def test_a_lease_that_another_run_holds_has_not_run_out(
    quarantined: CrashedClusterOnDisk, host: HostClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lease_held(FileStore(str(quarantined.bucket)), "orphans apply", steady_time.now_ms) as held:
        set_once_written(monkeypatch, host, CLOCK_KEY, DAYS_MS)

        outcome = quarantined.purge(*AGED_A_DAY)

        assert (host.ahead_ms, outcome.exit_code) == (DAYS_MS, ExitCode.LOCKED)
        held.renew()


@pytest.mark.parametrize("ahead_ms", [DAYS_MS, -DAYS_MS])
def test_a_run_that_begins_goes_by_the_clock_as_it_is_then(host: HostClock, ahead_ms: int) -> None:
    steady_time.begin()
    before_ms = steady_time.now_ms()
    host.ahead_ms = ahead_ms
    meanwhile_ms = steady_time.now_ms()

    steady_time.begin()

    assert before_ms <= meanwhile_ms < before_ms + DAYS_MS
    assert abs(steady_time.now_ms() - meanwhile_ms) > DAYS_MS // 2
    host.ahead_ms = 0
    steady_time.begin()

"""A whole simulated cluster: with any seed nothing is lost and nothing stays; a build without a guard is found out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from tieredctl_proposals.coordinator.ownership import OwnershipWorker
from tieredctl_proposals.ops.diskless.simulation import coordinator_host
from tieredctl_proposals.ops.diskless.simulation.run import Outcome, simulate
from tieredctl_proposals.ops.diskless.simulation.settings import Settings

from tests.conftest import inputs
from tests.coordinator.broken_owners import WithoutAsking, WithoutGrace, WithoutOwnership, WithoutStarting
from tests.rigs.memory import IN_MEMORY
from tests.shares import divided


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tieredctl-simulation-", dir=IN_MEMORY) as name:
        yield Path(name)


def drawn(seed: int) -> Settings:
    """A small cluster with many faults."""
    chance = Random(-seed)
    return Settings(
        seed=seed,
        batches=60,
        brokers=3,
        racks=chance.randint(1, 3),
        coordinators=chance.randint(1, 3),
        producers_per_broker=4,
        partitions_per_coordinator=2,
        retention_ms=20_000,
        grace_ms=40_000,
        orphan_scan_ms=60_000,
        orphan_grace_ms=100_000,
        uses_gateways=chance.random() < 0.3,
        crash_rate=0.1,
        failover_ms=chance.choice((4_000, 60_000)),
        slow_store_rate=chance.choice((0.0, 0.3)),
        snapshot_records=20,
    )


def outcome_of(settings: Settings, folder: Path) -> Outcome:
    with TemporaryDirectory(dir=folder) as own:
        return simulate(settings, Path(own))


def test_with_any_seed_nothing_is_lost_and_no_file_stays(folder: Path) -> None:
    for seed in divided(range(inputs(500))):
        outcome = outcome_of(drawn(seed), folder)
        assert not outcome.lost, seed
        assert not outcome.left, seed
        assert outcome.counts["acknowledged"] == outcome.counts["produced"] == 60, seed


def test_a_file_that_is_released_while_a_coordinator_looks_for_such_files_is_found(folder: Path) -> None:
    """Its record was appended before, and is applied after."""
    assert not outcome_of(drawn(1545), folder).left


@pytest.mark.parametrize(
    ("build", "lost"),
    [(WithoutGrace, "reads"), (WithoutOwnership, "objects"), (WithoutAsking, "files"), (WithoutStarting, "files")],
)
def test_a_build_without_a_guard_loses_or_leaves_something(
    build: type[OwnershipWorker], lost: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_host, "OwnershipWorker", build)

    outcomes = (outcome_of(drawn(seed), folder) for seed in range(300))

    assert any(outcome.left if lost == "files" else outcome.lost.get(lost) for outcome in outcomes)


def test_orphan_grace_that_is_shorter_than_clocks_are_apart_loses_batches(folder: Path) -> None:
    without = (replace(drawn(seed), orphan_grace_ms=0, orphan_scan_ms=1_000) for seed in range(300))

    assert any(outcome_of(settings, folder).lost.get("batches") for settings in without)


def test_gateways_make_commit_calls_fewer(folder: Path) -> None:
    spread = Settings(batches=2_000, coordinators=6, uses_gateways=False)

    calls = [outcome_of(each, folder).counts["commit calls"] for each in (spread, replace(spread, uses_gateways=True))]

    assert calls[1] * 2 < calls[0]


def test_every_fault_happens(folder: Path) -> None:
    """What the promises hold against is there."""
    counts = outcome_of(
        Settings(batches=30_000, failover_ms=10_000, crash_rate=0.02, snapshot_records=100), folder
    ).counts

    faults = (
        *("broker crashes", "failovers", "snapshots", "files left by a crash", "files committed in part"),
        *("commits tried again", "duplicates", "committed without batches", "deleted as orphans"),
        *("recoveries from own state", "recoveries from snapshot"),
    )
    assert [fault for fault in faults if not counts[fault]] == []


def test_new_leaders_without_a_state_say_what_they_recovered_from(folder: Path) -> None:
    """A snapshot where one was taken; before the first, there is the whole log."""
    few = Settings(seed=3, batches=2_000, coordinators=2, failover_ms=2_000)
    for settings, origin in ((few, "whole log"), (replace(few, snapshot_records=2), "snapshot")):
        counts = outcome_of(settings, folder).counts

        assert bool(counts["snapshots"]) == (origin == "snapshot")
        assert counts["recoveries from own state"] > 0, origin
        assert counts[f"recoveries from {origin}"] > 0, origin
        if not counts["snapshots"]:
            assert not counts["recoveries from snapshot"]

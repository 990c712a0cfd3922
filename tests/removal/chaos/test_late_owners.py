"""Combined objects that are needed again once they were removed: random stories seldom get there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.removal.chaos.broken_builds import Break, a_stop_ends_the_run, nothing_is_put_back, purge_does_not_ask
from tests.removal.chaos.invariants import demand_ended_well, demand_still_in_quarantine, objects_only_in_quarantine
from tests.removal.chaos.seeds import run
from tests.removal.chaos.trial import Setting, now_ms
from tests.removal.chaos.wal_cluster import WalTrial
from tests.removal.chaos.workers import failures_of

SEEDS = range(12)


def needed_after_a_kill(seed: int, folder: Path) -> None:
    """A run is killed, all that is to come happens, and the next run stops at what is needed by then."""
    trial, chance = WalTrial(folder / "trial", Setting(seed, receipts_in_store=True, batch_objects=2)), Random(seed)
    run(trial, trial.apply, trial.world(chance, kill_at=chance.randint(100, 250), broker_activity=0.0))
    trial.cluster.act_to_the_end(now_ms())
    demand_ended_well(trial, run(trial, trial.apply, trial.world(chance, broker_activity=0.0)).result)


def purged_when_needed(seed: int, folder: Path) -> None:
    """All is removed, and needed when nobody looks any more."""
    trial, chance = WalTrial(folder / "trial", Setting(seed, receipts_in_store=True)), Random(seed)
    run(trial, trial.apply, trial.world(chance, broker_activity=0.0))
    trial.cluster.act_to_the_end(now_ms())
    last_copies = objects_only_in_quarantine(trial)
    told = trial.purge(trial.world(chance, broker_activity=0.0))
    demand_still_in_quarantine(trial, last_copies)
    assert not told.violations


def test_what_is_needed_again_is_put_back_and_never_purged(folder: Path) -> None:
    failures = [*failures_of(SEEDS, needed_after_a_kill, folder), *failures_of(SEEDS, purged_when_needed, folder)]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("broken", [a_stop_ends_the_run, nothing_is_put_back])
def test_a_build_that_does_not_put_it_back_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, broken: Break
) -> None:
    broken(monkeypatch)

    assert failures_of(SEEDS, needed_after_a_kill, folder, most=1)


def test_a_build_that_purges_it_is_found_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    purge_does_not_ask(monkeypatch)

    assert failures_of(SEEDS, purged_when_needed, folder, most=1)

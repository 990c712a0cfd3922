"""A plan that expires while it is carried out."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.removal.chaos.broken_builds import only_what_is_confirmed_is_put_back
from tests.removal.chaos.invariants import demand_ended_well, last_receipts
from tests.removal.chaos.seeds import run
from tests.removal.chaos.trial import Setting, Trial, now_ms
from tests.removal.chaos.workers import failures_of
from tests.shares import divided
from tieredctl.model.removal import ReceiptStep

MONTH_MS = 31 * 24 * 3_600_000
SOMETHING_IS_DELETED_AT = 120
KILLED_AT = range(60, 220)
SEED_OF_A_LATE_OWNER = 2


def removed(trial: Trial) -> set[str]:
    return {receipt.key for receipt in last_receipts(trial).values() if receipt.step is ReceiptStep.REMOVED}


def test_nothing_more_of_it_is_removed_and_what_got_an_owner_is_put_back(folder: Path) -> None:
    trial, chance = Trial(folder / "trial", Setting(SEED_OF_A_LATE_OWNER)), Random(0)
    killed = run(trial, trial.apply, trial.world(chance, kill_at=SOMETHING_IS_DELETED_AT, broker_activity=0.0))
    before = removed(trial)
    trial.cluster.act_to_the_end(now_ms())
    later = trial.world(chance, broker_activity=0.0)
    clock_ms = later.clock_ms
    later.clock_ms = lambda: clock_ms() + MONTH_MS

    told = run(trial, trial.apply, later).result

    assert killed.was_killed
    assert before
    assert told.stopped == "plan-expired"
    assert removed(trial) < before
    demand_ended_well(trial, told)


def expires_after_a_kill_at(boundary: int, folder: Path) -> None:
    """A run is killed, owners appear, and the next run may only put back."""
    trial, chance = Trial(folder / "trial", Setting(SEED_OF_A_LATE_OWNER)), Random(0)
    run(trial, trial.apply, trial.world(chance, kill_at=boundary, broker_activity=0.0))
    trial.cluster.act_to_the_end(now_ms())
    later = trial.world(chance, broker_activity=0.0)
    clock_ms = later.clock_ms
    later.clock_ms = lambda: clock_ms() + MONTH_MS
    demand_ended_well(trial, run(trial, trial.apply, later).result)


def test_wherever_the_run_before_was_killed_owned_objects_are_put_back(folder: Path) -> None:
    failures = failures_of(divided(KILLED_AT), expires_after_a_kill_at, folder)
    assert not failures, "\n".join(failures)


def test_a_build_that_puts_back_only_what_is_confirmed_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_what_is_confirmed_is_put_back(monkeypatch)

    assert failures_of(KILLED_AT, expires_after_a_kill_at, folder, most=1)


def test_an_expired_plan_that_nobody_began_is_refused(folder: Path) -> None:
    trial = Trial(folder / "trial", Setting(SEED_OF_A_LATE_OWNER))
    world = trial.world(Random(0), broker_activity=0.0)
    clock_ms = world.clock_ms
    world.clock_ms = lambda: clock_ms() + MONTH_MS

    told = trial.apply(world)

    assert told.stopped == "plan-expired"
    assert trial.entries() == []

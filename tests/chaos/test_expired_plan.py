"""A plan that expires while it is carried out."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.chaos.invariants import demand_ended_well, last_receipts
from tests.chaos.seeds import run
from tests.chaos.trial import Setting, Trial, now_ms
from tieredctl.model.removal import ReceiptStep

MONTH_MS = 31 * 24 * 3_600_000
SOMETHING_IS_DELETED_AT = 120
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


def test_an_expired_plan_that_nobody_began_is_refused(folder: Path) -> None:
    trial = Trial(folder / "trial", Setting(SEED_OF_A_LATE_OWNER))
    world = trial.world(Random(0), broker_activity=0.0)
    clock_ms = world.clock_ms
    world.clock_ms = lambda: clock_ms() + MONTH_MS

    told = trial.apply(world)

    assert told.stopped == "plan-expired"
    assert trial.entries() == []

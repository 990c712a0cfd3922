"""One seed: a cluster, a plan, runs that are killed, and an end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.removal.chaos.boundaries import World
from tests.removal.chaos.children import Ended, in_child
from tests.removal.chaos.invariants import (
    demand_all_back,
    demand_ended_well,
    demand_finished,
    demand_nothing_lost,
    demand_still_in_quarantine,
    got_owners,
    last_receipts,
    may_go_on,
    objects_only_in_quarantine,
    removed_so_far,
)
from tests.removal.chaos.trial import Setting, Told, Trial, now_ms
from tests.removal.chaos.wal_cluster import WalTrial
from tieredctl.model.removal import ReceiptStep, RemovalMode

MOST_DISTURBED_RUNS = 3
MOST_BOUNDARIES = 280
"""About as many as a run has."""
_SKEWS_MS = (4 * 60_000, -4 * 60_000, 48 * 3_600_000, -48 * 3_600_000)
"""Of host and store: two that do no harm, and two that would."""
Run = Callable[[World], Told]
TrialOf = Callable[[Path, Setting], Trial]


def drawn_setting(seed: int, trial_of: TrialOf) -> Setting:
    chance = Random(-seed)
    drawn = Setting(
        seed,
        chance.choice([RemovalMode.QUARANTINE] * 3 + [RemovalMode.DELETE]),
        receipts_in_store=chance.random() < 0.3,
        has_key=chance.random() < 0.5,
        batch_objects=chance.choice([2, 3, 5, 100]),
    )
    if trial_of is WalTrial:
        return replace(drawn, has_key=True, receipts_in_store=True)
    # Without a key, nothing is removed by receipts in the store.
    return replace(drawn, has_key=drawn.has_key or drawn.receipts_in_store)


def try_seed(seed: int, folder: Path, trial_of: TrialOf = Trial) -> None:
    """Everything at random. Raises AssertionError where an invariant is broken."""
    chance = Random(seed)
    trial = trial_of(folder, drawn_setting(seed, trial_of))
    activity = chance.choice([0.02, 0.05, 0.1, 0.3])
    disturbed_runs = chance.randint(0, MOST_DISTURBED_RUNS)
    lost_before = chance.choice([None, None, None, None, chance.randint(0, disturbed_runs)])
    for number in range(disturbed_runs):
        if number == lost_before:
            trial.lose_promised(chance)
        _disturbed_run(trial, chance, activity)
    if disturbed_runs == lost_before:
        trial.lose_promised(chance)
    endings = [finish, finish_and_undo, finish_and_purge, finish_and_undo_altered, undo, undo]
    if trial.setting.mode is RemovalMode.DELETE:
        endings = [finish]
    chance.choice(endings)(trial, chance, activity)


def boundaries_of(setting: Setting, folder: Path, trial_of: TrialOf = Trial) -> int:
    """How many there are in a run that nothing disturbs."""
    trial = trial_of(folder, setting)
    world = trial.world(Random(setting.seed), broker_activity=0.0)
    demand_finished(trial, trial.apply(world))
    return world.boundaries


def try_kill_at(
    boundary: int, folder: Path, setting: Setting, *, copies_fail: bool = False, trial_of: TrialOf = Trial
) -> None:
    """Kills a run at one boundary. Another ends the work, or cannot even copy what is left; and all is undone."""
    trial, chance = trial_of(folder, setting), Random(boundary)
    killed = run(trial, trial.apply, trial.world(chance, kill_at=boundary, broker_activity=0.0))
    assert killed.was_killed
    if copies_fail:
        run(trial, trial.apply, trial.world(chance, broker_activity=0.0, copy_fault_rate=1.0))
    else:
        finish(trial, chance, 0.05)
    if setting.mode is RemovalMode.QUARANTINE:
        undo(trial, chance, 0.0, kill_at=boundary)


def run(trial: Trial, what: Run, world: World) -> Ended:
    """One run, in a process of its own where that may be killed, and what has to hold after it."""
    ended = _ended(trial, what, world)
    demand_nothing_lost(trial)
    return ended


def _ended(trial: Trial, what: Run, world: World) -> Ended:
    if world.kill_at is None:
        return Ended(was_killed=False, result=what(world))
    return in_child(lambda: what(world), trial.folder)


def finish(trial: Trial, chance: Random, activity: float) -> None:
    """A run that nothing disturbs but the broker ends the work, or finds that the world has changed, or that the store
    lacks what it should have."""
    removed = removed_so_far(trial)
    before = run(trial, trial.apply, trial.world(chance, broker_activity=activity))
    told: Told = before.result
    demand_ended_well(trial, told)
    if trial.cluster.lost:
        assert told.stopped in ("promised-objects-missing", "plan-used"), told
    elif told.stopped == "promised-objects-missing":
        assert got_owners(trial, removed), told
    elif told.stopped == "world-changed":
        assert not may_go_on(trial), told
    elif told.stopped != "plan-used" and not told.lost:
        demand_finished(trial, told)
        again: Told = run(trial, trial.apply, trial.world(chance, broker_activity=0)).result
        assert again.stopped == "plan-used", again


def undo(trial: Trial, chance: Random, activity: float, kill_at: int | None = None) -> None:
    """Restores, in as many runs as it takes."""
    kills = [kill_at] if kill_at else [chance.randint(1, 60) for _ in range(chance.randrange(3))]
    for at in kills:
        run(trial, trial.restore, trial.world(chance, kill_at=at, broker_activity=activity, fault_rate=0.02))
    told: Told = run(trial, trial.restore, trial.world(chance, broker_activity=0.0)).result
    nothing_was_begun = told.stopped in ("path-missing", "receipts-damaged")
    # Where other bytes were put over a copy that another run had made, what is in place looks like another object.
    may_fail = told.stopped is None and (trial.was_lied_to or only_unrecorded_copies_failed(trial))
    assert told.is_complete or nothing_was_begun or may_fail, told
    demand_all_back(trial)
    demand_ended_well(trial, told)


def only_unrecorded_copies_failed(trial: Trial) -> bool:
    """Whether a run was stopped after it copied what failed, and before it recorded that: nobody deleted it, or its
    broker did."""
    failed = [one for one in last_receipts(trial).values() if one.step is ReceiptStep.FAILED]
    # What could not even be copied is where it was.
    return all((one.error or "").startswith("copy-unverified") for one in failed if one.copy is not None)


def finish_and_undo_altered(trial: Trial, chance: Random, activity: float) -> None:
    """Somebody wrote over copies: what they hold now never comes back, and whoever restores is told."""
    finish(trial, chance, activity)
    trial.alter_copies(chance)
    told: Told = run(trial, trial.restore, trial.world(chance, broker_activity=0.0)).result
    absent = {key for key in trial.altered if trial.cluster.read(key) is None}
    altered = {key for key in trial.planned_keys if trial.cluster.read(key) not in (None, trial.cluster.content(key))}
    assert not altered, (trial.setting, altered)
    assert not absent or told.failed or told.stopped, (trial.setting, told)


def finish_and_undo(trial: Trial, chance: Random, activity: float) -> None:
    finish(trial, chance, activity)
    undo(trial, chance, activity)


def finish_and_purge(trial: Trial, chance: Random, activity: float) -> None:
    """Some owners appear when nobody looks any more."""
    finish(trial, chance, activity)
    for _ in range(chance.choice([0, 30])):
        trial.cluster.act(now_ms())
    for at in (chance.randint(1, 30), None):
        last_copies = objects_only_in_quarantine(trial)
        world = trial.world(chance, kill_at=at, broker_activity=activity)
        ended = _ended(trial, trial.purge, world)
        demand_still_in_quarantine(trial, last_copies)
        assert ended.was_killed or not ended.result.violations, ended.result


def _disturbed_run(trial: Trial, chance: Random, activity: float) -> None:
    world = trial.world(
        chance,
        kill_at=chance.choice([None, chance.randint(1, MOST_BOUNDARIES), chance.randint(1, MOST_BOUNDARIES)]),
        broker_activity=activity,
        fault_rate=chance.choice([0, 0, 0.01, 0.05]),
        copy_fault_rate=chance.choice([0, 0, 0, 0.5]),
        lag_rate=chance.choice([0, 0, 0.1, 0.3]),
        lie_rate=chance.choice([0, 0, 0, 0.05, 0.3]),
        skew_ms=chance.choice([0, 0, 0, 0, 0, 0, *_SKEWS_MS]),
    )
    trial.was_lied_to |= world.lie_rate > 0
    rival = chance.choice([None, None, trial.apply, trial.restore])
    if rival == trial.restore and trial.setting.mode is RemovalMode.DELETE:
        rival = None
    rivals: list[Told] = []
    if rival is not None:
        theirs = trial.world(Random(chance.random()), broker_activity=activity)
        world.take_over = lambda: rivals.append(rival(theirs))
        world.take_over_at = chance.randint(1, MOST_BOUNDARIES)
        world.take_over_anywhere = trial.was_overtaken_deleting = chance.random() < 0.5

    def run_beside_rival(world: World) -> Told:
        told = trial.apply(world)
        if rival == trial.restore and any(one.is_complete for one in rivals) and not world.take_over_anywhere:
            demand_all_back(trial)
        return told

    ended = run(trial, run_beside_rival, world)
    if not ended.was_killed:
        demand_ended_disturbed(trial, ended.result)


def demand_ended_disturbed(trial: Trial, told: Told) -> None:
    """A run that was disturbed leaves work behind, but breaks nothing."""
    assert not told.violations, (trial.setting, told)
    if told.is_complete and told.stopped is None:
        demand_ended_well(trial, told)

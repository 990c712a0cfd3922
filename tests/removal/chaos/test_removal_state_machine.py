"""The same invariants, with Hypothesis choosing what happens, and telling the shortest story that breaks one."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.conftest import examples
from tests.removal.chaos.boundaries import World
from tests.removal.chaos.invariants import (
    demand_all_back,
    demand_ended_well,
    demand_finished,
    demand_nothing_lost,
    demand_still_in_quarantine,
    got_owners,
    may_go_on,
    objects_only_in_quarantine,
    removed_so_far,
)
from tests.removal.chaos.seeds import Run
from tests.removal.chaos.trial import Setting, Told, Trial, now_ms
from tests.removal.chaos.wal_cluster import WalTrial
from tests.rigs.memory import IN_MEMORY

BOUNDARIES = st.none() | st.integers(1, 120)
STEPS = st.integers(1, 6)


class Killed(BaseException):
    """The process is dead: nothing that it would still do is done."""


class Dead(World):
    """A world in which nothing goes on once the process was killed in it."""

    def boundary(self, *, may_delete: bool = False) -> None:
        if self.kill_at is not None and self.boundaries >= self.kill_at:
            raise Killed
        super().boundary(may_delete=may_delete)


class RemovalMachine(RuleBasedStateMachine):
    """A cluster with a plan."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(mkdtemp(prefix="tieredctl-chaos-", dir=IN_MEMORY))
        self._was_purged = False

    @initialize(
        trial_of=st.sampled_from([Trial, Trial, WalTrial]),
        seed=st.integers(0, 1_000),
        in_store=st.booleans(),
        batch=st.sampled_from([2, 5, 100]),
    )
    def plan(self, trial_of: type[Trial], seed: int, in_store: bool, batch: int) -> None:
        in_store |= trial_of is WalTrial
        self._trial = trial_of(self._folder, Setting(seed, receipts_in_store=in_store, batch_objects=batch))

    @rule(steps=STEPS)
    def the_broker_acts(self, steps: int) -> None:
        for _ in range(steps):
            self._trial.cluster.act(now_ms())

    @precondition(lambda self: not self._trial.cluster.lost)
    @rule(chance=st.randoms(use_true_random=False))
    def a_promised_object_is_lost(self, chance: Random) -> None:
        self._trial.lose_promised(chance)

    @rule(kill_at=BOUNDARIES, chance=st.randoms(use_true_random=False), overtaken=st.booleans())
    def apply(self, kill_at: int | None, chance: Random, overtaken: bool) -> None:
        world = self._world(chance, kill_at)
        if overtaken:
            # Its clock is ahead of ours by more than our lease lasts.
            theirs = self._world(Random(1), None)
            world.take_over = lambda: self._end(self._trial.apply, theirs)
            world.take_over_at = chance.randint(1, 60)
        removed = removed_so_far(self._trial)
        told = self._end(self._trial.apply, world)
        assert not told or not told.violations
        if told and not overtaken and not self._was_purged:
            demand_ended_well(self._trial, told)
            if self._trial.cluster.lost:
                assert told.stopped in ("promised-objects-missing", "plan-used")
            elif told.stopped == "promised-objects-missing":
                assert got_owners(self._trial, removed)
            elif told.stopped == "world-changed":
                assert not may_go_on(self._trial)
            elif told.stopped != "plan-used":
                demand_finished(self._trial, told)

    @rule(kill_at=BOUNDARIES, chance=st.randoms(use_true_random=False))
    def restore(self, kill_at: int | None, chance: Random) -> None:
        told = self._end(self._trial.restore, self._world(chance, kill_at, broker_activity=0.0))
        if told and not self._was_purged:
            demand_all_back(self._trial)

    @precondition(lambda self: not self._was_purged)
    @rule(kill_at=BOUNDARIES, chance=st.randoms(use_true_random=False))
    def purge(self, kill_at: int | None, chance: Random) -> None:
        last_copies = objects_only_in_quarantine(self._trial)

        told = self._end(self._trial.purge, self._world(chance, kill_at))

        self._was_purged = True
        demand_still_in_quarantine(self._trial, last_copies)
        assert not told or not told.violations

    @invariant()
    def nothing_is_lost(self) -> None:
        if not self._was_purged:
            demand_nothing_lost(self._trial)

    def teardown(self) -> None:
        shutil.rmtree(self._folder)

    def _world(self, chance: Random, kill_at: int | None, broker_activity: float = 0.05) -> World:
        drawn = self._trial.world(chance, kill_at=kill_at, broker_activity=broker_activity, die=_die)
        return Dead(**vars(drawn))

    def _end(self, run: Run, world: World) -> Told | None:
        try:
            return run(world)
        except Killed:
            return None


def _die() -> None:
    raise Killed


TestRemovals = RemovalMachine.TestCase
TestRemovals.settings = settings(
    max_examples=examples(40), stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)

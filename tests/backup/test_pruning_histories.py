"""Any history of backups and prunes, killed or at once: what is left is whole, and what has to stay stays."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backup.small_sets import SmallSets
from tests.conftest import examples
from tests.rigs.mortal_store import Killed
from tieredctl.ops.backup.pruning_plan import Action

AT_MOST = 60
"""Of the boundaries of a command, the last at which it is killed."""
_DAYS = st.sampled_from([0.0, 0.5, 1.0, 3.0])
_KILLED = st.one_of(st.none(), st.integers(1, AT_MOST))
_RULES = st.tuples(st.one_of(st.none(), st.integers(1, 6)), st.one_of(st.none(), _DAYS)).filter(any)
_RUN = st.tuples(st.just("run"), st.booleans(), st.sampled_from([(), ("groups",)]), _KILLED)
_PRUNE = st.tuples(st.just("prune"), _RULES, _KILLED)
_BOTH = st.tuples(st.just("both"), st.booleans(), _RULES, st.integers(1, 12))


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.one_of(_RUN, _PRUNE, _BOTH), _DAYS), max_size=20))
def test_whatever_runs_and_prunes_follow_each_other_what_is_kept_is_whole(steps: list[tuple[tuple, float]]) -> None:  # type: ignore[type-arg]
    small = SmallSets()
    small.add()
    for (kind, *how), days in steps:
        demanded = {*small.sets.numbers()}
        if kind == "run":
            full, unread, killed = how
            small.store.kill_after(killed)
            with suppress(Killed):
                small.add(full=full, unread=unread)
        elif kind == "prune":
            (last, within_days), killed = how
            plan = small.plan(last, within_days)
            demanded = demanded_by(small, last, within_days)
            small.store.kill_after(killed)
            with suppress(Killed):
                assert small.apply(plan).is_complete
                assert small.sets.numbers() == [one.number for one in plan.sets if one.action is Action.KEEP]
        else:
            full, rules, step = how

            def prune(demanded: set[int] = demanded, rules: tuple[int | None, float | None] = rules) -> None:
                demanded &= demanded_by(small, *rules)
                assert small.prune(*rules).is_complete

            small.store.then(step, prune)
            small.add(full=full)
        small.store.kill_after(None)
        small.store.meanwhile = None
        small.let_the_lease_run_out()
        small.pass_days(days)
        assert {*small.sets.numbers()} >= demanded
        small.demand_whole()


def demanded_by(small: SmallSets, last: int | None, within_days: float | None) -> set[int]:
    """What has to stay whatever a prune does: decided on apart from it."""
    there = {number: small.sets.read(number).manifest for number in small.sets.numbers()}
    newest_first = sorted(there, reverse=True)
    named = {newest_first[0], *newest_first[: last or 0]}
    named |= {next((one for one in newest_first if not there[one].unread), newest_first[0])}
    limit_ms = small.store.now_ms - (within_days or 0) * 86_400_000
    named |= {one for one in there if within_days is not None and there[one].created_ms > limit_ms}
    return {needed for one in named for needed in range(there[one].base, one + 1)}

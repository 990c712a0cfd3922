"""`backup prune` removes nothing that a set which stays needs: in any order of runs, prunes, kills and both at once."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.backup.small_sets import CLUSTER_ID, SmallSets, two_chains
from tests.rigs.mortal_store import Killed
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.backup.manifests import Beginning, read_manifest
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ports.object_store import Deletion, DeletionOutcome
from tieredctl.storage.memory import MemoryStore


def test_sets_before_a_full_one_go_and_all_that_is_left_is_whole() -> None:
    small = two_chains()
    kept = {key for key in small.store.objects() if "/00000004" in key or "/00000005" in key}

    outcome = small.prune(last=2)

    assert (outcome.stopped, outcome.planned, outcome.done, small.sets.numbers()) == (None, 3, 3, [4, 5])
    assert small.store.objects().keys() == kept | {small.sets.beginning_key(4)}
    small.demand_whole()
    assert small.add().number == 6
    small.demand_whole()


def test_a_set_that_a_kept_one_needs_stays() -> None:
    small = two_chains()

    plan = small.plan(last=3)

    assert (plan.first, plan.to_remove()) == (1, [])
    assert [one.reason for one in plan.sets[:3]] == ["a later set needs it"] * 2 + ["it is one of the last 3"]


def test_of_two_rules_each_keeps() -> None:
    small = two_chains()

    assert small.plan(last=1, within_days=2.5).first == 4
    assert small.plan(last=1, within_days=3.5).first == 1
    assert small.plan(within_days=0).first == 4
    assert small.plan(last=99).first == 1


def test_a_set_is_as_old_as_the_younger_of_two_times() -> None:
    small = two_chains()
    manifest = small.sets.manifest_key(3)
    small.store.put(manifest, small.store.read(manifest), small.store.now_ms)

    assert small.plan(within_days=1).first == 1


def test_the_newest_set_that_lacks_nothing_stays() -> None:
    assert two_chains(unread=["groups: refused"]).plan(last=1).first == 1
    nothing_whole = SmallSets()
    for _ in range(2):
        nothing_whole.add(full=True, unread=["groups: refused"])
    assert nothing_whole.plan(last=1).first == 2


def test_what_killed_runs_and_prunes_left_goes_too_and_nothing_of_others() -> None:
    small = two_chains()
    folder = f"{CLUSTER_ID}/sets/00000002-20261129T100000Z-ffffffff"
    left = [f"{folder}/cluster.json", f"{folder}/groups.json"]
    others = [f"{folder}/notes.txt", f"{CLUSTER_ID}/manifests/old.json", f"{CLUSTER_ID}/sets/readme", "other/cluster"]
    others.append(f"{CLUSTER_ID}/sets/00000005-20261129T100000Z-ffffffff/cluster.json")
    for key in (*left, *others):
        small.store.put(key, b"")

    outcome = small.prune(last=1)

    assert outcome.is_complete
    assert not small.store.objects().keys() & {*left}
    assert small.store.objects().keys() >= {*others}


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("what", ["manifest", "file"])
@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_nothing_is_pruned_where_anything_is_damaged(number: int, what: str, damage: str) -> None:
    small = two_chains()
    manifest = small.sets.read(number).manifest
    key = small.sets.manifest_key(number) if what == "manifest" else small.sets.file_key(manifest, "cluster.checkpoint")
    data = small.store.read(key)
    small.store.delete([*small.store.list(key)])
    if damage == "altered":
        small.store.put(key, bytes([data[0] ^ 1]) + data[1:])
    elif (number, what) in {(1, "manifest"), (5, "manifest")}:
        before = small.store.objects()
        with suppress(TieredctlError):  # of a newest set nothing tells; a chain without its first is damaged
            assert small.plan(last=1).first == 4
        assert small.store.objects() == before
        return

    with pytest.raises(TieredctlError) as refused:
        small.plan(last=1)

    assert refused.value.code is ErrorCode.UNDECODABLE


@pytest.mark.parametrize("was_pruned", [False, True])
def test_what_to_delete_by_hand_of_damaged_sets_is_said_and_leaves_sound_ones(was_pruned: bool) -> None:
    small = two_chains()
    if was_pruned:
        small.add(full=True)
        small.prune(last=3)
    damaged = small.sets.numbers()[1]
    key = small.sets.file_key(small.sets.read(damaged).manifest, "cluster.checkpoint")
    small.store.put(key, b"altered")
    with pytest.raises(TieredctlError) as refused:
        small.plan(last=1)
    expected = 6 if was_pruned else 4
    assert (f"below {expected:08}." in refused.value.hint, key in refused.value.message) == (True, True)

    for key in small.store.objects():
        match = re.match(rf"{CLUSTER_ID}/(?:manifests|beginnings|sets)/([0-9]{{8}})", key)
        if match is not None and int(match[1]) < expected:
            small.store.delete([*small.store.list(key)])

    small.demand_whole()
    small.add()
    assert small.plan(last=1).first == expected


def test_of_a_damaged_newest_chain_a_new_one_is_the_way_out() -> None:
    small = two_chains()
    small.store.put(small.sets.file_key(small.sets.read(5).manifest, "cluster.checkpoint"), b"altered")

    with pytest.raises(TieredctlError) as refused:
        small.plan(last=1)

    assert "backup run --full" in refused.value.hint
    small.add(full=True)
    with pytest.raises(TieredctlError) as refused:
        small.plan(last=1)
    assert "below 00000006." in refused.value.hint


def test_a_set_whose_files_lie_with_an_older_one_keeps_them() -> None:
    small = two_chains()
    fourth = small.sets.read(4).manifest
    odd = replace(fourth, folder="sets/00000002-20261129T100000Z-abcdefab", number=6, base=6, previous=None)
    for file in odd.files:
        small.store.put(small.sets.file_key(odd, file.name), small.sets.read_file(fourth, file.name))
    small.store.put(small.sets.manifest_key(6), replace(odd, previous=small.sets.read(5).sha256).encode())

    with pytest.raises(TieredctlError) as refused:
        small.plan(last=1)

    assert refused.value.code is ErrorCode.UNDECODABLE


def test_a_plan_that_no_longer_holds_removes_nothing() -> None:
    def chain_replaced(small: SmallSets) -> None:
        fifth = small.sets.manifest_key(5)
        data = replace(read_manifest(small.store.read(fifth)), created_ms=7).encode()
        small.store.put(fifth, data)

    def file_lost(small: SmallSets) -> None:
        key = small.sets.file_key(small.sets.read(4).manifest, "cluster.checkpoint")
        small.store.delete([*small.store.list(key)])

    def newest_lost(small: SmallSets) -> None:
        small.store.delete([*small.store.list(small.sets.manifest_key(5))])

    for change in (chain_replaced, file_lost, newest_lost):
        small = two_chains()
        plan = small.plan(last=1)
        change(small)
        before = small.store.objects()

        outcome = small.apply(plan)

        assert outcome.stopped is not None, change
        assert (outcome.done, small.store.objects()) == (0, before), change


def test_where_more_is_to_stay_by_now_nothing_is_removed() -> None:
    small = two_chains()
    plan, third = small.plan(within_days=1), small.sets.manifest_key(3)
    small.store.put(third, small.store.read(third), small.store.now_ms)
    before = small.store.objects()

    outcome = small.apply(plan)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, small.store.objects()) == (ErrorCode.WORLD_CHANGED, before)


def test_once_a_kept_set_is_not_whole_no_more_is_removed() -> None:
    small = two_chains()
    plan = small.plan(last=1)
    kept = small.sets.file_key(small.sets.read(4).manifest, "cluster.checkpoint")
    begun = {one.key for one in plan.to_remove()[0].objects}

    def lost() -> None:
        if begun & small.store.objects().keys():
            small.store.then(1, lost)
        else:
            MemoryStore.delete(small.store, [*small.store.list(kept)])

    small.store.then(1, lost)
    outcome = small.apply(plan)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.done) == (ErrorCode.WORLD_CHANGED, 1)
    assert small.sets.has_files(small.sets.read(3).manifest)


def test_a_beginning_that_is_not_noted_as_it_was_written_removes_nothing() -> None:
    small = two_chains()
    plan, note = small.plan(last=1), small.sets.beginning_key(4)
    before, other = small.store.objects(), Beginning(CLUSTER_ID, 4, "0" * 64).encode()
    put = small.store.put_if_absent
    small.store.put_if_absent = lambda key, data: put(key, other if key == note else data)  # type: ignore[method-assign]

    outcome = small.apply(plan)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.done) == (ErrorCode.WORLD_CHANGED, 0)
    assert small.store.objects() == before | {note: other}


def test_once_the_beginning_is_noted_no_more_nothing_more_is_removed() -> None:
    small = two_chains()
    plan, first = small.plan(last=1), small.sets.manifest_key(1)

    def lost() -> None:
        if first in small.store.objects():
            small.store.then(1, lost)
        else:
            MemoryStore.delete(small.store, [*small.store.list(small.sets.beginning_key(4))])

    small.store.then(1, lost)
    outcome = small.apply(plan)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.done) == (ErrorCode.WORLD_CHANGED, 1)
    assert small.sets.numbers() == [2, 3, 4, 5]


def test_what_is_pruned_while_it_is_verified_is_not_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("manifests/00000002.json", "cluster.checkpoint"):
        small = two_chains()
        read, pending = small.store.read, [small.prune]

        def read_late(name: str, *places: int, key: str = key, read: Any = read, pending: Any = pending) -> bytes:
            if name.endswith(key) and pending:
                pending.pop()(last=1)
            data: bytes = read(name, *places)
            return data

        monkeypatch.setattr(small.store, "read", read_late)
        assert small.sets.examined()[0] == []
        assert (pending, small.sets.numbers()) == ([], [4, 5])


def test_what_appears_or_changes_meanwhile_is_left_alone() -> None:
    small = two_chains()
    plan = small.plan(last=1)
    changed = small.sets.file_key(small.sets.read(2).manifest, "cluster.checkpoint")
    data = small.store.read(changed)
    small.store.put(changed, data)
    late = f"{CLUSTER_ID}/sets/00000001-20261129T100000Z-ffffffff/cluster.json"
    small.store.put(late, b"")

    outcome = small.apply(plan)

    assert (outcome.done, outcome.skipped, outcome.stopped) == (2, 1, None)
    assert small.store.objects().keys() >= {changed, late}
    small.demand_whole()
    assert small.prune(last=1).is_complete
    assert not small.store.objects().keys() & {changed, late}


def test_a_second_prune_waits_for_the_first() -> None:
    small = two_chains()
    plan = small.plan(last=1)
    codes = []

    def second() -> None:
        with pytest.raises(TieredctlError) as refused:
            small.apply(plan)
        codes.append(refused.value.code)

    small.store.then(12, second)
    assert small.apply(plan).is_complete
    assert codes == [ErrorCode.LOCKED]


def test_a_prune_that_lost_its_lease_removes_no_more() -> None:
    small = two_chains()
    plan = small.plan(last=1)

    def taken() -> None:
        small.store.put(LEASE_KEY, b"{}", small.store.now_ms)

    small.store.then(14, taken)
    outcome = small.apply(plan)

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.LEASE_LOST
    assert outcome.done < 3
    small.demand_whole()


def test_a_store_that_only_says_that_it_deletes_is_found_out() -> None:
    small = two_chains()
    small.store.delete = lambda objects: [Deletion(one, DeletionOutcome.GONE) for one in objects]  # type: ignore[method-assign]

    outcome = small.prune(last=1)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.done, outcome.failed) == (ErrorCode.REMOVAL_FAILED, 0, 1)
    small.demand_whole()


def test_killed_at_every_boundary_in_turn() -> None:
    whole = two_chains()
    before = whole.store.boundaries
    assert whole.prune(last=2).is_complete
    end, steps = whole.store.objects(), whole.store.boundaries - before
    assert steps > 2 * 3 * 3

    for step in range(1, steps + 1):
        small = two_chains()
        small.store.kill_after(step)
        with suppress(Killed):
            small.prune(last=2)
        small.store.kill_after(None)
        small.let_the_lease_run_out()
        small.demand_whole()
        assert small.sets.numbers()[-2:] == [4, 5], step

        assert small.prune(last=2).stopped is None, step

        assert small.store.objects() == end, step
        small.demand_whole()


def boundaries_of_a_run() -> int:
    alone = two_chains()
    before = alone.store.boundaries
    alone.add()
    return alone.store.boundaries - before


def test_a_run_is_not_pruned_under_at_any_boundary() -> None:
    for step in range(1, boundaries_of_a_run() + 1):
        small = two_chains()
        small.store.then(step, partial(small.prune, last=1))
        manifest = small.add()
        assert (manifest.number, small.sets.numbers()) == (6, [4, 5, 6]), step
        small.demand_whole()


def test_a_run_that_slept_while_later_sets_were_made_and_pruned_makes_no_set() -> None:
    for step in range(1, boundaries_of_a_run() - 1):
        small = two_chains()

        def long_sleep(small: SmallSets = small) -> None:
            small.add()
            small.add(full=True)
            assert small.prune(last=1).is_complete

        small.store.then(step, long_sleep)
        with pytest.raises(TieredctlError) as refused:
            small.add()
        assert refused.value.code in (ErrorCode.LOCKED, ErrorCode.UNDECODABLE), step  # its own files were pruned
        assert small.sets.numbers() == [7], step
        small.demand_whole()
        small.let_the_lease_run_out()
        assert small.prune(last=1).is_complete
        assert all("/00000007" in key for key in small.store.objects()), step


def test_the_first_set_after_a_prune_cannot_be_another() -> None:
    small = two_chains()
    small.prune(last=1)
    fourth, note = small.sets.manifest_key(4), small.sets.beginning_key(4)
    data, noted = small.store.read(fourth), small.store.read(note)

    for key, other in (
        (fourth, replace(read_manifest(data), created_ms=1).encode()),
        (note, noted[:-1]),
        (note, Beginning(CLUSTER_ID, 5, small.sets.read(5).sha256).encode()),
        (note, b"[]"),
    ):
        was = small.store.read(key)
        small.store.put(key, other)
        assert {one.subject for one in small.sets.examined()[0]} >= {key}
        small.store.put(key, was)
    small.store.delete([*small.store.list(fourth)])
    assert {one.subject for one in small.sets.examined()[0]} >= {fourth}
    small.store.delete([*small.store.list(small.sets.manifest_key(5))])
    assert {one.subject for one in small.sets.examined()[0]} == {fourth}
    assert small.add().number == 5

"""Under which ids and numbers sets are kept: each is found again, and needs none that a prune takes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.backup.small_sets import SmallSets, two_chains
from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ops.backup.manifests import EventRange, read_manifest
from tieredctl.ops.backup.sets import clusters_in
from tieredctl.ports.object_store import Deletion


@pytest.mark.parametrize("cluster_id", ["prod", "my.cluster_2", "-kU3OEVBNTcwNTJENDM2Qg"])
def test_sets_of_a_cluster_whose_id_is_no_uuid_are_found_again(cluster_id: str) -> None:
    small = SmallSets(cluster_id=cluster_id)
    small.add()
    small.add(full=True)

    assert small.prune(last=1).is_complete
    assert (clusters_in(small.store), small.sets.numbers()) == ([cluster_id], [2])
    small.demand_whole()


@pytest.mark.parametrize("cluster_id", ["", ".", "..", ".tieredctl", "prod/eu", "a b", "ü", "a\n", "a" * 250])
def test_no_set_is_made_that_would_not_be_found_again(cluster_id: str) -> None:
    small = SmallSets(cluster_id=cluster_id)

    with pytest.raises(TieredctlError) as refused:
        small.add()

    assert (refused.value.code, small.store.objects()) == (ErrorCode.UNWRITABLE, {})


def test_a_manifest_with_a_number_that_kafka_cannot_have_is_damaged() -> None:
    manifest = two_chains().sets.read(5).manifest

    assert read_manifest(manifest.encode()) == manifest
    for wrong in (-1, 1 << 63, 10**400):
        for altered in (
            replace(manifest, created_ms=wrong),
            replace(manifest, metadata_log_end=wrong),
            replace(manifest, events={0: EventRange(0, wrong)}),
            replace(manifest, files=[replace(manifest.files[0], size=wrong)]),
        ):
            with pytest.raises(DecodeError):
                read_manifest(altered.encode())


def test_a_stray_manifest_of_any_number_is_damage_and_no_set_follows_it() -> None:
    small = two_chains()
    stray = small.sets.manifest_key(99_999_999)
    small.store.put(stray, b"{}")
    before = small.store.objects()

    found = small.sets.examined()[0]
    with pytest.raises(TieredctlError) as unpruned:
        small.plan(last=1)
    with pytest.raises(TieredctlError) as refused:
        small.add(full=True)

    assert {one.subject for one in found} >= {stray, small.sets.manifest_key(6), small.sets.manifest_key(99_999_998)}
    assert len(found) < 1_000
    assert (unpruned.value.code, refused.value.code) == (ErrorCode.UNDECODABLE, ErrorCode.UNDECODABLE)
    assert small.store.objects() == before


def test_a_run_that_begins_while_a_prune_does_makes_no_set_that_needs_what_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(_objects: object) -> Sequence[Deletion]:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It deletes nothing yet.")

    step, reached = 0, True
    while reached:
        step, reached = step + 1, False
        small, late = two_chains(), iter([*[False] * (step - 1), True])

        def list_late(*prefix: str, small: Any = small, late: Any = late, listed: Any = small.store.list) -> Any:
            nonlocal reached
            if next(late, False):
                small.add(full=True)
                plan = small.plan(last=1)
                with monkeypatch.context() as stopped:
                    stopped.setattr(small.store, "delete", slow)
                    assert small.apply(plan).stopped is not None
                reached = True
            return listed(*prefix)

        with monkeypatch.context() as patched, suppress(TieredctlError):
            patched.setattr(small.store, "list", list_late)
            small.add()
        small.demand_whole()
    assert step > 3

"""Builds of `backup prune` in which one safeguard is missing. Its tests have to find each out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tieredctl.ops.backup import pruning, pruning_plan
from tieredctl.ops.backup.manifests import Beginning
from tieredctl.ops.backup.pruning import Pruning
from tieredctl.ops.backup.sets import ClusterSets
from tieredctl.ops.guards.lease import Lease
from tieredctl.ports.object_store import StoredObject

Break = Callable[[pytest.MonkeyPatch], None]


def nothing_is_planned_again(patch: pytest.MonkeyPatch) -> None:
    """What was to go when the plan was shown goes."""
    patch.setattr(Pruning, "_demand_same_plan", lambda self: self._demand_kept())


def what_stays_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Whether it is still whole, and needs nothing that goes."""

    def listed(self: Pruning) -> Mapping[str, StoredObject]:
        return {one.key: one for one in self.sets.store.list(f"{self.sets.cluster_id}/")}

    patch.setattr(Pruning, "_demand_kept", listed)


def the_beginning_is_not_noted(patch: pytest.MonkeyPatch) -> None:
    """What goes are sets until the last of their objects is gone."""
    patch.setattr(Pruning, "_begin", lambda _: None)
    patch.setattr(Pruning, "_demand_begun", lambda _: None)


def the_beginning_is_not_read_back(patch: pytest.MonkeyPatch) -> None:
    """Whatever note is there is believed to be this one."""

    def begin(self: Pruning) -> None:
        first = self.plan.first
        note = Beginning(self.sets.cluster_id, first, self.plan.kept[first]).encode()
        self.sets.store.put_if_absent(self.sets.beginning_key(first), note)

    patch.setattr(Pruning, "_begin", begin)


def the_note_is_not_looked_for_again(patch: pytest.MonkeyPatch) -> None:
    """Whether what goes is still none for every reader."""
    patch.setattr(Pruning, "_demand_begun", lambda _: None)


def versions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Whatever is under a key is taken for what was planned."""
    patch.setattr(pruning, "_are_as_planned", lambda *_: True)


def the_lease_is_never_renewed(patch: pytest.MonkeyPatch) -> None:
    """Who lost it goes on."""
    patch.setattr(Lease, "renew", lambda _: None)


def deletions_are_believed(patch: pytest.MonkeyPatch) -> None:
    """What the store says is deleted is gone."""
    patch.setattr(pruning, "delete_surely", lambda store, objects: store.delete(objects))


def damage_does_not_matter(patch: pytest.MonkeyPatch) -> None:
    """Sets that are altered, or lack something, decide like others."""
    patch.setattr(pruning_plan, "_whole_sets", lambda sets: sets.examined()[1])


def chains_are_not_followed(patch: pytest.MonkeyPatch) -> None:
    """What a set that stays is added to may go."""
    patch.setattr(pruning_plan, "_first", lambda _, oldest: oldest)


def the_newest_whole_set_is_one_like_others(patch: pytest.MonkeyPatch) -> None:
    """Though all later ones lack something."""
    reasons = pruning_plan._reasons

    def by_rules_alone(*given: Any) -> dict[int, str]:
        found = reasons(*given)
        return {number: reason for number, reason in found.items() if reason != pruning_plan._WHOLE}

    patch.setattr(pruning_plan, "_reasons", by_rules_alone)


def a_set_is_as_old_as_it_says(patch: pytest.MonkeyPatch) -> None:
    """Whenever the store got it."""
    written_ms = ClusterSets.written_ms
    patch.setattr(ClusterSets, "written_ms", lambda self: dict.fromkeys(written_ms(self), 0))


def all_in_a_numbered_folder_is_of_a_set(patch: pytest.MonkeyPatch) -> None:
    """Whatever its name, and whoever put it there."""
    patch.setattr(pruning_plan, "FILES", _Everything())


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


BROKEN_PRUNES: tuple[Break, ...] = (
    nothing_is_planned_again,
    what_stays_is_not_looked_at,
    the_beginning_is_not_noted,
    the_beginning_is_not_read_back,
    the_note_is_not_looked_for_again,
    versions_are_ignored,
    the_lease_is_never_renewed,
    deletions_are_believed,
    damage_does_not_matter,
    chains_are_not_followed,
    the_newest_whole_set_is_one_like_others,
    a_set_is_as_old_as_it_says,
    all_in_a_numbered_folder_is_of_a_set,
)

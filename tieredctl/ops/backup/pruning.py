"""Removes the sets that a plan of `backup prune` showed, and looks again afterwards.

First it is noted with which set they begin from now on: that makes all before it none at once, for every reader and for
a backup that is still under way. Interrupted anywhere, those that stay are whole, and another run removes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.backup.manifests import Beginning
from tieredctl.ops.backup.pruning_plan import PlannedSet, PlannedSetRow, PrunePlan, is_file, needed_objects
from tieredctl.ops.backup.sets import ClusterSets, KnownSet
from tieredctl.ops.change import Outcome
from tieredctl.ops.guards.deletion import delete_surely
from tieredctl.ops.guards.lease import Hold
from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    DeletionOutcome,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.progress import note


@dataclass(frozen=True, slots=True)
class PrunedSetRow(PlannedSetRow):
    """The same, once the plan was applied."""

    removed: bool


@dataclass(slots=True, kw_only=True)
class PruneOutcome(Outcome):
    """What became of the planned sets. Skipped are those of which an object is another by now."""

    plan: PrunePlan
    removed: set[int] = field(default_factory=set)
    """The numbers of those of which nothing is left."""

    @property
    def others_left(self) -> int:
        return self.planned - self.done - self.skipped

    def rows(self) -> list[PrunedSetRow]:
        """The plan's rows, each with its outcome."""
        return [one.extended(PrunedSetRow, removed=one.set_ in self.removed) for one in self.plan.rows()]


@dataclass(slots=True)
class Pruning:
    """One run over a plan that was shown, under the lease of the store that has the sets."""

    sets: ClusterSets[WritableObjectStore]
    plan: PrunePlan
    plan_again: Callable[[], PrunePlan]
    """Reads all sets once more, every byte."""
    hold: Hold
    _read: dict[int, tuple[str, KnownSet]] = field(default_factory=dict)
    """Sets by number, with the version of the manifest that was read."""

    def run(self) -> PruneOutcome:
        """Removes what was shown. Whatever stops it is in the outcome."""
        parts = self.plan.to_remove()
        outcome = PruneOutcome(plan=self.plan, planned=len(parts))
        try:
            self._demand_same_plan()
            with critical_section():
                self.hold.renew()
                self._begin()
            for part in parts:
                with critical_section():
                    self._remove(part, outcome)
                    if part is parts[-1]:
                        mark_complete()
                note("sets removed", outcome.done, len(parts))
            self._demand_kept()
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _demand_same_plan(self) -> None:
        """Raises TieredctlError `world-changed` unless all that goes would go by what is there now, too."""
        if self.plan_again().first < self.plan.first:
            raise self._changed("more of its sets are to stay by now")
        self._demand_kept()

    def _begin(self) -> None:
        """Notes with which set they begin."""
        first = self.plan.first
        beginning = Beginning(self.sets.cluster_id, first, self.plan.kept[first])
        self.sets.store.put_if_absent(self.sets.beginning_key(first), beginning.encode())
        # It may have been there already: an earlier run ended after it, or the answer to this one was lost.
        if self.sets.beginning(first) != beginning:
            raise self._changed(f"{self.sets.beginning_key(first)} is of another set {first}")

    def _remove(self, part: PlannedSet, outcome: PruneOutcome) -> None:
        there = self._demand_kept()
        self._demand_begun()
        doomed = [one for one in part.objects if one.key in there]
        if not _are_as_planned(doomed, there):
            outcome.skipped += 1
            return
        self.hold.renew()
        manifests = [one for one in doomed if not is_file(one)]
        self._delete(manifests, outcome)
        self._delete([one for one in doomed if one not in manifests], outcome)
        outcome.done += 1
        outcome.removed.add(part.number)

    def _demand_begun(self) -> None:
        """Raises TieredctlError `world-changed` where another prune noted another beginning since."""
        if self.sets.first() != self.plan.first:
            raise self._changed(f"its sets no longer begin with set {self.plan.first}")

    def _delete(self, objects: Sequence[StoredObject], outcome: PruneOutcome) -> None:
        """Raises TieredctlError where one is not gone afterwards: then no more is removed."""
        for start in range(0, len(objects), MOST_DELETED_AT_ONCE):
            deletions = delete_surely(self.sets.store, objects[start : start + MOST_DELETED_AT_ONCE])
            gone = [one.stored.size for one in deletions if one.outcome is DeletionOutcome.GONE]
            outcome.bytes += sum(gone)
            if len(gone) < len(deletions):
                outcome.failed += 1
                left = next(one for one in deletions if one.outcome is not DeletionOutcome.GONE)
                raise left.error or self._changed(f"{left.stored.key} was written meanwhile")

    def _demand_kept(self) -> Mapping[str, StoredObject]:
        """All objects of the cluster that are there, by key. Raises TieredctlError `world-changed` unless the sets that
        were to stay, and those made since, are whole by their manifests and sizes, and need nothing that is to go."""
        numbers = [number for number in self.sets.numbers() if number >= self.plan.first]
        there = {one.key: one for one in self.sets.store.list(f"{self.sets.cluster_id}/")}
        known = {number: self._known(number, there) for number in numbers}
        doomed = {one.key for part in self.plan.to_remove() for one in part.objects}
        for number, sha256 in self.plan.kept.items():
            if number not in known or known[number].sha256 != sha256:
                raise self._changed(f"set {number}, which was to stay, is gone or another")
        for number, one in known.items():
            if one.manifest.base < self.plan.first:
                raise self._changed(f"set {number} needs set {one.manifest.base}, which was to go")
            for key, size in needed_objects(self.sets, one.manifest).items():
                if key in doomed or key not in there or size not in (None, there[key].size):
                    raise self._changed(f"{key}, which set {number} needs, is not as it was, or was to go")
        return there

    def _known(self, number: int, there: Mapping[str, StoredObject]) -> KnownSet:
        """Read again only where its manifest is another one by now: before each set that goes, all that stay are
        looked at."""
        listed = there.get(self.sets.manifest_key(number))
        version, known = self._read.get(number, ("", None))
        if known is None or listed is None or listed.version != version:
            known = self.sets.read(number)
            if listed is not None:
                self._read[number] = listed.version, known
        return known

    def _changed(self, what: str) -> TieredctlError:
        message = f"The backup of cluster {self.sets.cluster_id} changed since the plan was made: {what}."
        return TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="See `tieredctl backup verify`; then plan again.")


def _are_as_planned(doomed: Sequence[StoredObject], there: Mapping[str, StoredObject]) -> bool:
    return all(there[one.key].version == one.version for one in doomed)

"""Deletes old copies of combined objects from the quarantine: the step that cannot be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tieredctl.model.findings import Finding
from tieredctl.model.interruption import nothing_is_left, unbroken
from tieredctl.model.work import note
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.deletion import delete_surely
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.guards.quarantine_keys import Quarantined
from tieredctl.ops.orphan_removal.limits import demand_share
from tieredctl.ops.orphan_removal.quarantine import copies_in_quarantine
from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    DeletionOutcome,
    ObjectStore,
    StoredObject,
    WritableObjectStore,
    list_unreserved,
)
from tieredctl_proposals.ops.wal.contents import combined_id_of
from tieredctl_proposals.ops.wal.need import FreshNeeds, Needs


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """What would be deleted for good."""

    url: str
    cluster_id: str | None
    copies: Sequence[tuple[StoredObject, Quarantined]]
    kept: int
    """Copies that are old enough, and of another cluster, put back, or of an object whose events do not say that it is
    deleted."""
    whole: int
    """How many combined objects and copies there are."""
    max_percent: float

    def demand_share(self) -> None:
        """Raises TieredctlError `plan-too-large` where more of them would go than allowed."""
        demand_share(len(self.copies), self.whole, self.max_percent, f"{self.url}, its quarantine included")

    def source(self) -> Document:
        return {"kind": "wal-store", "store": self.url, "clusterId": self.cluster_id}

    def rows(self) -> list[Document]:
        return [
            {"key": original.key, "size": copy.size, "planId": original.plan_id, "quarantineKey": copy.key}
            for copy, original in self.copies
        ]

    def summary(self) -> Document:
        size = sum(copy.size for copy, _ in self.copies)
        return {"planned": len(self.copies), "bytes": size, "kept": self.kept}

    def findings(self) -> list[Finding]:
        return []


def plan_purge(
    store: ObjectStore, fresh: FreshNeeds, cluster_id: str | None, older_than_ms: int, max_percent: float
) -> PurgePlan:
    """The copies that have been in quarantine for so long, of this cluster, whose originals nobody needs, are deleted
    by the events and were not put back. Raises TieredctlError as `FreshNeeds.judge` does."""
    needs = fresh.judge()
    there = [pair for pair in copies_in_quarantine(store) if combined_id_of(pair[1].key) is not None]
    old = [(copy, original) for copy, original in there if copy.last_modified_ms <= fresh.clock_ms() - older_than_ms]
    copies = [pair for pair in old if _may_go(store, needs, cluster_id, *pair)]
    whole = len(there) + sum(combined_id_of(stored.key) is not None for stored in list_unreserved(store))
    return PurgePlan(store.url, cluster_id, copies, len(old) - len(copies), whole, max_percent)


def _may_go(
    store: ObjectStore, needs: Needs, cluster_id: str | None, copy: StoredObject, original: Quarantined
) -> bool:
    combined_id = combined_id_of(original.key)
    return (
        cluster_id is not None
        and original.cluster_id == cluster_id
        and original.size == copy.size
        and combined_id is not None
        and combined_id in needs.may_go
        and needs.is_concluded(combined_id)
        and store.head(original.key) is None
    )


def purge(
    plan: PurgePlan,
    store: WritableObjectStore,
    fresh: FreshNeeds,
    cluster_id: str,
    older_than_ms: int,
    clock_ms: Callable[[], int],
) -> Outcome:
    """Deletes what is planned and still may go, by the store's clock. Raises TieredctlError if nothing may."""
    plan.demand_share()
    outcome = Outcome(planned=len(plan.copies))
    with lease_held(store, "wal purge", clock_ms) as lease:
        fresh.clock_ms = lease.clock
        again = plan_purge(store, fresh, cluster_id, older_than_ms, plan.max_percent)
        now = {copy.key: copy for copy, _ in again.copies}
        doomed = [copy for copy, _ in plan.copies if now.get(copy.key) == copy]
        outcome.skipped = len(plan.copies) - len(doomed)
        for first in range(0, len(doomed), MOST_DELETED_AT_ONCE):
            after = first + MOST_DELETED_AT_ONCE
            with unbroken():
                lease.renew()
                for deletion in delete_surely(store, doomed[first:after]):
                    if deletion.outcome is DeletionOutcome.GONE:
                        outcome.done += 1
                        outcome.bytes += deletion.stored.size
                    else:
                        outcome.failed += 1
                        outcome.stopped = outcome.stopped or deletion.error
                if after >= len(doomed):
                    nothing_is_left()
            note("copies deleted", outcome.done, outcome.planned)
    return outcome

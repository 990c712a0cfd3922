"""Finds old copies of combined objects that may be deleted from the quarantine: the step that cannot be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tieredctl.model.findings import Finding
from tieredctl.model.result_row import Main, ResultRow, Size, Wide
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.quarantine_keys import Quarantined, quarantined
from tieredctl.ops.orphan_removal.purge import Purge, PurgeCheck, PurgeOutcome
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore
from tieredctl_proposals.ops.wal.contents import combined_id_of
from tieredctl_proposals.ops.wal.owners import WalOwners


@dataclass(frozen=True, slots=True)
class PurgeLimits:
    """Limits to which copies may go. Time in ms."""

    cluster_id: str
    older_than_ms: int
    """The age of copies, by when they came into quarantine."""
    max_percent: float
    """The largest share of the store's combined objects, its quarantine included."""


@dataclass(frozen=True, slots=True)
class PurgedCopyRow(ResultRow):
    """A copy that would be deleted, or was."""

    key: Main[str]
    size: Size[int]
    plan_id: str
    quarantine_key: Wide[str]


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """What would be deleted for good."""

    url: str
    limits: PurgeLimits
    copies: Sequence[StoredObject]
    kept: int
    """Copies that are old enough, of what the events do not say to be deleted, or of an unknown cluster."""
    unproven: int = 0
    """How many of those are kept since their cluster is unknown."""
    silence: str | None = None
    """That the cluster did not say which topics are live."""

    @property
    def is_complete(self) -> bool:
        """Whether it has every copy that is old enough."""
        return not self.kept and self.silence is None

    def source(self) -> Document:
        return {"kind": "wal-store", "store": self.url, "clusterId": self.limits.cluster_id}

    def rows(self) -> list[PurgedCopyRow]:
        originals = ((copy, quarantined(copy.key)) for copy in self.copies)
        return [
            PurgedCopyRow(original.key, copy.size, original.plan_id, copy.key)
            for copy, original in originals
            if original is not None
        ]

    def summary(self) -> Document:
        size = sum(copy.size for copy in self.copies)
        return {"planned": len(self.copies), "bytes": size, "kept": self.kept, "unproven": self.unproven}

    def findings(self) -> list[Finding]:
        return []


def plan_purge(store: ObjectStore, owners: WalOwners, limits: PurgeLimits) -> PurgePlan:
    """The copies that have been in quarantine for so long, of this cluster, whose originals nobody needs and the events
    say to be deleted; and those of what is back in its place. Raises TieredctlError as `PurgeCheck.rehearse` does."""
    check = PurgeCheck(
        *(store, owners, limits.cluster_id, limits.older_than_ms, owners.clock_ms),
        max_percent=limits.max_percent,
        is_meant=_is_of_an_object,
    )
    copies = list[StoredObject]()
    outcome = check.rehearse(copies.extend)
    kept = outcome.skipped + outcome.unproven
    return PurgePlan(store.url, limits, copies, kept, outcome.unproven, owners.fresh.topic_sources.silence)


def purge(plan: PurgePlan, store: WritableObjectStore, owners: WalOwners, key: bytes | None) -> PurgeOutcome:
    """Deletes what was shown and still may go, by the store's clock; `key` sealed the notes about the copies. Raises
    TieredctlError if nothing may be."""
    limits = plan.limits
    run = Purge(
        *(store, owners, limits.cluster_id, limits.older_than_ms, owners.clock_ms),
        max_percent=limits.max_percent,
        is_meant=partial(_was_shown, frozenset(plan.copies)),
        key=key,
        purpose="wal purge",
    )
    outcome = run.run()
    outcome.skipped += len(plan.copies) - outcome.planned
    outcome.planned = len(plan.copies)
    return outcome


def _is_of_an_object(copy: StoredObject, original: Quarantined) -> bool:
    return combined_id_of(original.key) is not None and original.size in (None, copy.size)


def _was_shown(shown: frozenset[StoredObject], copy: StoredObject, _original: Quarantined) -> bool:
    return copy in shown

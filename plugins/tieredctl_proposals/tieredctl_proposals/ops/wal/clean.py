"""Finds the combined objects that nobody needs any more (KIP-1176, "Life Cycle"), as a plan that the remover carries
out.

Whatever interrupts that, the next run goes on under the same plan's id, and finds what is left by the events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.removal import (
    PlanHeader,
    Planned,
    PlannedObject,
    PlanTotals,
    PlanUse,
    ReceiptsHeader,
    RemovalMode,
)
from tieredctl.model.result_row import JsonOnly, ResultRow, Size
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.guards.ledger import plans_on_record
from tieredctl.ops.orphan_removal.limits import Limits, demand_share, enough_percent, is_too_large
from tieredctl.ops.orphan_removal.plan_file import PlanFile
from tieredctl.ops.orphan_removal.receipts import stored_header
from tieredctl.ops.orphan_removal.use import receipts_header
from tieredctl.ops.verification.removed_keys import keys_put_back
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved
from tieredctl_proposals.ops.wal.contents import combined_id_of
from tieredctl_proposals.ops.wal.need import FreshNeeds, Needs
from tieredctl_proposals.ops.wal.own_index import with_all_judged
from tieredctl_proposals.ops.wal.owners import LAYOUT
from tieredctl_proposals.wal.places import WAL_SUFFIX, object_key

_VALID_FOR_MS = 24 * 3_600_000
"""A plan is carried out when it is confirmed."""
_PUT_BACK, _TOO_YOUNG = "PUT_BACK", "TOO_YOUNG"
"""Why an object is kept, where it is not for its need."""


@dataclass(frozen=True, slots=True)
class CleanedObjectRow(ResultRow):
    """A combined object that may go."""

    combined_segment_id: str
    key: JsonOnly[str]
    size: Size[int | None]
    """None for one that is not there, whose events alone are left."""
    need: JsonOnly[str]
    segments: list[Document]


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """What may go now."""

    url: str
    cluster_id: str | None
    listed: int
    """How many combined objects there are."""
    objects: Sequence[PlannedObject]
    eventless: Sequence[str]
    """The ids of objects that are not in the store, and whose events do not say that they are deleted."""
    needs: Needs
    limits: Limits
    unfinished: Sequence[ReceiptsHeader] = ()
    """The plans that earlier runs began and did not end."""

    def has_work(self, mode: RemovalMode) -> bool:
        """Whether anything is to be done, if only to end what another run began."""
        begun = (one.mode is mode and one.cluster_id == self.cluster_id for one in self.unfinished)
        return bool(self.objects or self.eventless) or any(begun)

    @property
    def needed_percent(self) -> int | None:
        """The share that it needs, where it has more of the store than allowed: it is not applied as it is."""
        share = (len(self.objects), self.listed)
        return enough_percent(*share) if is_too_large(*share, self.limits.max_percent) else None

    def demand_share(self) -> None:
        """Raises TieredctlError `plan-too-large` where more of the store would go than allowed."""
        demand_share(len(self.objects), self.listed, self.limits.max_percent, self.url)

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.objects)

    def source(self) -> Document:
        return {"kind": "wal-store", "store": self.url, "clusterId": self.cluster_id}

    def rows(self) -> list[CleanedObjectRow]:
        there = {one.key: one for one in self.objects}
        ids = [*map(_id_of, self.objects), *self.eventless]
        return [self._row(combined_id, there.get(object_key(combined_id))) for combined_id in ids]

    def summary(self) -> Document:
        return {
            "planned": len(self.objects),
            "bytes": self.bytes,
            "eventsOnly": len(self.eventless),
            "neededPercent": self.needed_percent,
            "kept": dict(self.needs.kept),
        }

    def findings(self) -> list[Finding]:
        return []

    def shown(self, plan_id: str, cluster_id: str, mode: RemovalMode, now_ms: int) -> ShownPlan:
        """Itself as what the remover carries out, valid from now on."""
        header = PlanHeader(
            *(plan_id, now_ms, now_ms + _VALID_FOR_MS, cluster_id, self.url, LAYOUT, mode),
            min_age_ms=self.limits.min_age_ms,
            max_percent=self.limits.max_percent,
            metadata_end_offsets={},
        )
        totals = PlanTotals(len(self.objects), self.bytes, 0, self.listed)
        return ShownPlan(Path(plan_id), header, totals, plan_id, is_signed=True, objects_shown=self.objects)

    def _row(self, combined_id: str, stored: PlannedObject | None) -> CleanedObjectRow:
        judged = self.needs.may_go[combined_id]
        segments = [
            {**partition_document(one), "segmentId": id_, "need": need.name} for one, id_, need in judged.segments
        ]
        size = None if stored is None else stored.size
        return CleanedObjectRow(combined_id, object_key(combined_id), size, judged.need.name, segments)


def plan_cleaning(store: ObjectStore, fresh: FreshNeeds, cluster_id: str | None, limits: Limits) -> CleanPlan:
    """What may go now: neither what is too young, nor what was put back, whose events stay deleted. Raises
    TieredctlError as `FreshNeeds.judge` and `keys_put_back` do."""
    listed = {stored.key: stored for stored in list_unreserved(store)}
    combined_count = sum(combined_id_of(key) is not None for key in listed)
    needs = fresh.judge()
    there, eventless = list[tuple[str, StoredObject]](), []
    for combined_id in sorted(needs.may_go):
        stored = listed.get(object_key(combined_id)) or store.head(object_key(combined_id))
        if stored is not None:
            there.append((combined_id, stored))
        elif not needs.is_concluded(combined_id):
            eventless.append(combined_id)
    newest_ms = fresh.clock_ms() - limits.min_age_ms
    put_back = keys_put_back(store)
    needs = needs.keeping([one for one, stored in there if stored.key in put_back], _PUT_BACK)
    young = [one for one, stored in there if one in needs.may_go and stored.last_modified_ms > newest_ms]
    needs = needs.keeping(young, _TOO_YOUNG)
    needs = with_all_judged(store, needs, [one for one in there if one[0] in needs.may_go])
    objects = [
        PlannedObject(*stored[:4], "orphan", needs.may_go[combined_id].need.name, None)
        for combined_id, stored in there
        if combined_id in needs.may_go
    ]
    return CleanPlan(store.url, cluster_id, combined_count, objects, eventless, needs, limits, unfinished_plans(store))


@dataclass(frozen=True, slots=True)
class ShownPlan(PlanFile):
    """A plan that was shown, and is carried out without ever being in a file."""

    objects_shown: Sequence[PlannedObject] = ()

    def planned(self) -> Iterator[Planned]:
        yield from self.objects_shown


def continued(plan: ShownPlan, store: ObjectStore) -> ShownPlan:
    """The plan under the id of the last one of its kind that a run began and did not end, if there is one: its receipts
    go on, and what it removed is looked at again."""
    for begun in unfinished_plans(store):
        plan_id = begun.plan_id
        again = replace(plan, path=Path(plan_id), header=replace(plan.header, plan_id=plan_id), digest=plan_id)
        if receipts_header(again) == begun:
            return again
    return plan


def unfinished_plans(store: ObjectStore) -> list[ReceiptsHeader]:
    """The plans that runs began and did not end, the last one first; not those without readable receipts."""
    headers = []
    for plan_id, record in plans_on_record(store):
        if record.use is PlanUse.APPLYING and record.layout == LAYOUT:
            try:
                headers.append(stored_header(store, plan_id))
            except TieredctlError as error:
                if error.code not in (ErrorCode.PATH_MISSING, ErrorCode.RECEIPTS_DAMAGED):
                    raise
    return headers


def _id_of(planned: PlannedObject) -> str:
    return planned.key.removesuffix(WAL_SUFFIX)

"""Removes combined objects that nobody needs any more, and leads their events to their end (KIP-1176, "Life Cycle").

In this order, for some objects at a time: each is copied to quarantine, and the copy compared; everything is read and
judged again; the deletion is announced by events, after which no upload of these segments can end any more; the objects
are deleted, in the version that was judged; their absence is looked at; the events say that they are gone. Every step
is on record before the next. Whatever interrupts it, the next run finds what is left by the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.interruption import nothing_is_left, unbroken
from tieredctl.model.removal import (
    PlannedObject,
    PlanRecord,
    PlanUse,
    Receipt,
    ReceiptsHeader,
    ReceiptStep,
    RemovalMode,
)
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.guards.deletion import delete_surely
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold, lease_held
from tieredctl.ops.guards.ledger import Ledger
from tieredctl.ops.guards.noted_bytes import note_bytes
from tieredctl.ops.orphan_removal.evidence import Evidence
from tieredctl.ops.orphan_removal.limits import DEFAULT_AGE_MS, DEFAULT_PERCENT, demand_share
from tieredctl.ops.orphan_removal.preparation import Preparation, Prepared, look
from tieredctl.ops.orphan_removal.putting_back import failed
from tieredctl.ops.orphan_removal.receipts import Receipts, StoredReceipts
from tieredctl.ops.orphan_removal.removed_keys import keys_put_back, note_removed
from tieredctl.ports.object_store import (
    Deletion,
    DeletionOutcome,
    ObjectStore,
    StoredObject,
    WritableObjectStore,
    list_unreserved,
)
from tieredctl_proposals.ops.wal.contents import combined_id_of
from tieredctl_proposals.ops.wal.event_log import EventLog
from tieredctl_proposals.ops.wal.need import FreshNeeds, Needs
from tieredctl_proposals.ops.wal.own_index import is_all_judged
from tieredctl_proposals.wal.deletion import deletion_steps
from tieredctl_proposals.wal.lifecycle import Need
from tieredctl_proposals.wal.places import WAL_SUFFIX, object_key
from tieredctl_proposals.wal.steps import DeleteObject, Publish

LAYOUT = "wal"
"""In receipts and the ledger, where other plans have a layout's name."""
_CLEANER = -1
"""The broker id of events that no broker writes."""
_AT_ONCE = 100
_PUT_BACK, _TOO_YOUNG = "PUT_BACK", "TOO_YOUNG"
"""Why an object is kept, where it is not for its need."""


@dataclass(frozen=True, slots=True)
class CleanLimits:
    """What may be removed of what nobody needs. Time in ms."""

    min_age_ms: int = DEFAULT_AGE_MS
    """By when an object was stored."""
    max_percent: float = DEFAULT_PERCENT
    """The largest share of the store's combined objects."""


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
    limits: CleanLimits

    def demand_share(self) -> None:
        """Raises TieredctlError `plan-too-large` where more of the store would go than allowed."""
        demand_share(len(self.objects), self.listed, self.limits.max_percent, self.url)

    def demand_old(self, now_ms: int) -> None:
        """Raises TieredctlError `age-too-low` where an object is too young by the store's clock."""
        for one in self.objects:
            if one.last_modified_ms > now_ms - self.limits.min_age_ms:
                message = (
                    f"{one.key} is younger than --min-age by the store's clock, which differs from this machine's."
                )
                raise TieredctlError(ErrorCode.AGE_TOO_LOW, message, hint="Set this machine's clock.")

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.objects)

    def source(self) -> Document:
        return {"kind": "wal-store", "store": self.url, "clusterId": self.cluster_id}

    def rows(self) -> list[Document]:
        there = {one.key: one for one in self.objects}
        ids = [*map(_id_of, self.objects), *self.eventless]
        return [self._row(combined_id, there.get(object_key(combined_id))) for combined_id in ids]

    def summary(self) -> Document:
        return {
            "planned": len(self.objects),
            "bytes": self.bytes,
            "eventsOnly": len(self.eventless),
            "kept": dict(self.needs.kept),
        }

    def findings(self) -> list[Finding]:
        return []

    def _row(self, combined_id: str, stored: PlannedObject | None) -> Document:
        judged = self.needs.may_go[combined_id]
        return {
            "combinedSegmentId": combined_id,
            "key": object_key(combined_id),
            "size": None if stored is None else stored.size,
            "need": judged.need.name,
            "segments": [
                {**partition_document(one), "segmentId": id_, "need": need.name} for one, id_, need in judged.segments
            ],
        }


def plan_cleaning(store: ObjectStore, fresh: FreshNeeds, cluster_id: str | None, limits: CleanLimits) -> CleanPlan:
    """What may go now: neither what is too young, nor what was put back, whose events stay deleted. Raises
    TieredctlError as `FreshNeeds.judge` and `keys_put_back` do."""
    listed = {stored.key: stored for stored in list_unreserved(store)}
    known = sum(combined_id_of(key) is not None for key in listed)
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
    needs = _with_all_judged(store, needs, [one for one in there if one[0] in needs.may_go])
    objects = [
        PlannedObject(*stored[:4], "orphan", needs.may_go[combined_id].need.name, None)
        for combined_id, stored in there
        if combined_id in needs.may_go
    ]
    return CleanPlan(store.url, cluster_id, known, objects, eventless, needs, limits)


def _with_all_judged(store: ObjectStore, needs: Needs, there: Sequence[tuple[str, StoredObject]]) -> Needs:
    """Keeps objects that have more in them than was judged."""
    wal = needs.events.replayed

    def is_unclear(one: tuple[str, StoredObject]) -> bool:
        return not is_all_judged(store, one[1], needs.may_go[one[0]], wal)

    unclear = [one[0] for one, is_it in zip(there, in_parallel(store, is_unclear, there), strict=True) if is_it]
    return needs.keeping(unclear, Need.UNKNOWN.name)


@dataclass(slots=True, kw_only=True)
class CleanOutcome(Outcome):
    """How far a plan was carried out. Skipped are objects that were gone already."""

    receipts: list[Receipt] = field(default_factory=list)
    """The last one of each object."""
    events: int = 0
    """How many were written."""


@dataclass(slots=True)
class Cleaning:
    """One run of a plan that was shown."""

    plan: CleanPlan
    plan_id: str
    cluster_id: str
    store: WritableObjectStore
    fresh: FreshNeeds
    clock_ms: Callable[[], int]
    mode: RemovalMode = RemovalMode.QUARANTINE
    tell: Callable[[CleanOutcome], None] = lambda _outcome: None
    key: bytes | None = None
    """Seals the notes of which bytes the copies hold."""

    def run(self) -> CleanOutcome:
        """Removes what is planned. Raises TieredctlError if nothing may be removed."""
        self.plan.demand_share()
        outcome = CleanOutcome(planned=len(self.plan.objects))
        with lease_held(self.store, "wal clean", self.clock_ms) as lease:
            self.fresh.clock_ms = lease.clock
            self.plan.demand_old(lease.clock())
            record = PlanRecord(PlanUse.APPLYING, self.cluster_id, LAYOUT, self.plan_id)
            ledger = Ledger(self.store, record, self.plan_id)
            header = ReceiptsHeader(self.plan_id, self.plan_id, self.cluster_id, self.store.url, LAYOUT, self.mode)
            receipts = StoredReceipts.begun(self.store, header)
            ledger.record(PlanUse.APPLYING)
            try:
                batches = [*_batches(self.plan.objects)]
                for objects in batches:
                    with unbroken():
                        self._remove(objects, receipts, lease, outcome)
                        if objects is batches[-1] and not self.plan.eventless:
                            nothing_is_left()
                    self.tell(outcome)
                with unbroken():
                    self._conclude(self.plan.eventless, lease, outcome)
                    nothing_is_left()
            except TieredctlError as error:
                outcome.stopped = error
            if outcome.stopped is None and not outcome.failed:
                ledger.record(PlanUse.APPLIED)
        return outcome

    def _remove(self, objects: Sequence[PlannedObject], receipts: Receipts, lease: Hold, outcome: CleanOutcome) -> None:
        evidence = Evidence(self.store, self.key, self.plan_id, receipts.are_beside_copies)
        preparation = Preparation(self.store, self.cluster_id, self.plan_id, self.mode, evidence)
        looked_at = in_parallel(self.store, lambda planned: look(self.store, planned), objects)
        prepared = in_parallel(self.store, lambda one: preparation.prepare(one, None), looked_at)
        doomed = [one for one in prepared if one.step is None]
        self._record(receipts, [self._receipt(one, one.step or _intent(one)) for one in prepared], outcome)
        note_bytes(self.store, self.key, self.plan_id, [one.copied for one in doomed if one.copied is not None])
        needs = self._still_unneeded([_id_of(one.planned) for one in doomed])
        self._demand_all_judged(needs, [(_id_of(one.planned), one.found) for one in doomed if one.found is not None])
        note_removed(self.store, self.key, self.plan_id, [one.planned.key for one in doomed])
        lease.renew()
        log = EventLog(self.store, needs.events.log.end_offsets, self.fresh.clock_ms)
        steps = {_id_of(one.planned): self._steps(needs, _id_of(one.planned)) for one in doomed}
        for announced, _ in steps.values():
            outcome.events += self._publish(log, announced)
        lease.renew()
        deletions = delete_surely(self.store, [one.found for one in doomed if one.found is not None])
        done = [self._deleted(one, deletion) for one, deletion in zip(doomed, deletions, strict=True)]
        self._record(receipts, done, outcome)
        for one, deletion in zip(doomed, deletions, strict=True):
            if deletion.outcome is DeletionOutcome.GONE:
                outcome.events += self._publish(log, steps[_id_of(one.planned)][1])
        self._conclude([_id_of(one.planned) for one in prepared if one.step is ReceiptStep.GONE], lease, outcome)

    def _conclude(self, ids: Sequence[str], lease: Hold, outcome: CleanOutcome) -> None:
        """Leads the events of objects that are not there to their end."""
        if not ids:
            return
        needs = self._still_unneeded(ids)
        lease.renew()
        log = EventLog(self.store, needs.events.log.end_offsets, self.fresh.clock_ms)
        for combined_id in ids:
            announced, concluded = self._steps(needs, combined_id)
            outcome.events += self._publish(log, announced)
            # Its upload may have gone on until it was announced as deleted: then there is an object for the next run.
            if self.store.head(object_key(combined_id)) is None:
                outcome.events += self._publish(log, concluded)

    def _demand_all_judged(self, needs: Needs, objects: Sequence[tuple[str, StoredObject]]) -> None:
        """Raises TieredctlError `world-changed` if an object has more in it than was judged."""
        may_go = _with_all_judged(self.store, needs, objects).may_go
        for combined_id, _ in objects:
            if combined_id not in may_go:
                message = f"{object_key(combined_id)} has segments in it that no event tells of."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _still_unneeded(self, ids: Sequence[str]) -> Needs:
        """Judges again. Raises TieredctlError `world-changed` if any object is needed now."""
        needs = self.fresh.judge()
        for combined_id in ids:
            if combined_id not in needs.may_go:
                message = f"{object_key(combined_id)} was not needed any more, and now it is."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        return needs

    def _steps(self, needs: Needs, combined_id: str) -> tuple[list[Publish], list[Publish]]:
        """The events before the object is deleted, and those after."""
        steps = list(
            deletion_steps(needs.events.replayed, combined_id, broker_id=_CLEANER, clock_ms=self.fresh.clock_ms)
        )
        (at,) = (number for number, step in enumerate(steps) if isinstance(step, DeleteObject))
        return _events(steps[:at]), _events(steps[at:])

    def _publish(self, log: EventLog, events: Sequence[Publish]) -> int:
        log.append(events)
        return len(events)

    def _record(self, receipts: Receipts, some: Sequence[Receipt], outcome: CleanOutcome) -> None:
        receipts.append(some)
        last = {one.key: one for one in (*outcome.receipts, *some)}
        outcome.receipts = list(last.values())
        for receipt in some:
            if receipt.step is ReceiptStep.REMOVED:
                outcome.done += 1
                outcome.bytes += receipt.size
            elif receipt.step is ReceiptStep.FAILED:
                outcome.failed += 1
            elif receipt.step is ReceiptStep.GONE:
                outcome.skipped += 1

    def _receipt(self, one: Prepared, step: ReceiptStep) -> Receipt:
        if one.error is not None:
            return failed(Receipt(step, one.planned.key, 0), self.clock_ms(), one.error)
        return one.receipt(step, self.clock_ms())

    def _deleted(self, one: Prepared, deletion: Deletion) -> Receipt:
        if deletion.outcome is DeletionOutcome.GONE:
            return self._receipt(one, ReceiptStep.REMOVED)
        message = f"{one.planned.key} was rewritten after it was judged."
        error = deletion.error or TieredctlError(ErrorCode.WORLD_CHANGED, message)
        return failed(self._receipt(one, ReceiptStep.FAILED), self.clock_ms(), error)


def _batches(objects: Sequence[PlannedObject]) -> Iterator[Sequence[PlannedObject]]:
    for first in range(0, len(objects), _AT_ONCE):
        yield objects[first : first + _AT_ONCE]


def _events(steps: Sequence[object]) -> list[Publish]:
    return [step for step in steps if isinstance(step, Publish)]


def _intent(one: Prepared) -> ReceiptStep:
    return ReceiptStep.COPIED if one.copy else ReceiptStep.DELETING


def _id_of(planned: PlannedObject) -> str:
    return planned.key.removesuffix(WAL_SUFFIX)

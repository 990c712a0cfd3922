"""Applying a plan from beginning to end: whether it is valid, whether it may be applied now, and the record of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import PlannedObject, PlanRecord, PlanUse, ReceiptsHeader
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold, lease_held
from tieredctl.ops.guards.ledger import Ledger, plan_use
from tieredctl.ops.guards.original_times import forget_original_times
from tieredctl.ops.guards.own_objects import TIMES_OF_RESTORED
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ops.orphan_removal.apply import Removal, RemovalOutcome
from tieredctl.ops.orphan_removal.limits import Limits, demand_promised, demand_share
from tieredctl.ops.orphan_removal.owners import Owners
from tieredctl.ops.orphan_removal.plan_file import PlanFile
from tieredctl.ops.orphan_removal.preparation import look
from tieredctl.ops.orphan_removal.receipts import Receipts
from tieredctl.ops.verification.removed_keys import keys_removed_since
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore, list_unreserved
from tieredctl.process.interruption import critical_section, mark_complete

_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What speaks against applying a plan now. Changes nothing."""

    plan: PlanFile
    store: ObjectStore
    owners: Owners
    clock_ms: Callable[[], int]
    limits: Limits
    key: bytes | None = None
    """Opens the seals of what was removed since the plan was made."""

    def rehearse(self) -> RemovalOutcome:
        """Checks whether everything that is planned is still orphaned. Raises TieredctlError `clock-skew` as the
        removal would."""
        demand_common_time(self.store, self.clock_ms)
        if expired := self.expired():
            raise expired
        self.demand_unused()
        outcome = RemovalOutcome(planned=self.plan.totals.objects + self.plan.totals.uploads)
        try:
            self.owners.refresh()
            self.demand_fit()
            if lost := self.lost_promises():
                raise lost
            objects = self.plan.objects()
            while batch := list(islice(objects, _AT_ONCE)):
                self._rehearse_batch(batch, outcome)
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def expired(self) -> TieredctlError | None:
        """The error for a plan that is no longer valid."""
        header = self.plan.header
        if self.clock_ms() < header.valid_until_ms:
            return None
        hours = (header.valid_until_ms - header.created_ms) / 3_600_000
        duration = "1 hour" if hours == 1 else f"{hours:g} hours"
        message = f"{self.plan.path} expired: it was valid for {duration}."
        return TieredctlError(ErrorCode.PLAN_EXPIRED, message)

    def record(self) -> PlanRecord:
        """What a store records about it."""
        header = self.plan.header
        return PlanRecord(
            *(PlanUse.APPLYING, header.cluster_id, header.layout, self.plan.digest),
            *(self.limits.foreign_topic_ids, self.limits.unknown_keys),
        )

    def demand_unused(self) -> PlanUse | None:
        """How far it was applied so far; None if it was not. Raises TieredctlError `plan-used` if it was finished."""
        use = plan_use(self.store, self.record(), self.plan.header.plan_id)
        if use in (PlanUse.APPLIED, PlanUse.RESTORED):
            message = f"{self.plan.path} was already {use.value}; a plan can be used only once."
            raise TieredctlError(ErrorCode.PLAN_USED, message)
        return use

    def demand_fit(self) -> None:
        """Raises TieredctlError `plan-altered` if the totals do not match the lines, `no-overlap`, `ambiguous-prefix`,
        `quarantine-scanned` or `plan-too-large`.

        The store is listed only as far as needed, so that another root inside it is only found among the planned
        objects and those listed first.
        """
        fit, most = self.owners.fit(self.store.url), self.limits.max_percent
        planned = fit.look_at_planned(StoredObject(one.key, one.size, 0, "") for one in self.plan.objects())
        if planned != self.plan.totals.objects:
            message = f"{self.plan.path} has {planned} objects, but its totals give {self.plan.totals.objects}."
            raise TieredctlError(ErrorCode.PLAN_ALTERED, message)
        enough = int(planned * 100 / most) + 1 if most else None
        if planned or self.plan.totals.uploads:
            objects = iter(list_unreserved(self.store))
            while listed := list(islice(objects, _AT_ONCE)):
                fit.look_at(listed)
                if fit.is_sure and enough is not None and fit.listed >= enough:
                    break
        fit.demand()
        whole = fit.listed
        if planned * 100 > whole * most:
            whole += self._removed_meanwhile(None if enough is None else enough - whole)
        demand_share(planned, whole, most, self.store.url)

    def lost_promises(self) -> TieredctlError | None:
        """The error for a store that lacks more of what is promised than it may: both are asked, not the plan. Raises
        TieredctlError `plan-used` before that, and as the owners do."""
        most = self.limits.max_missing
        if most is None:
            return None
        self.demand_unused()
        self.owners.refresh()
        try:
            demand_promised(self.owners.missing(self.store), most, self.store.url)
        except TieredctlError as error:
            return error
        return None

    def _removed_meanwhile(self, enough: int | None) -> int:
        """How many objects other plans removed since this one was made; counts no further than needed."""
        since_ms = self.limits.removed_since_ms
        if since_ms is None:
            return 0
        return sum(1 for _ in islice(keys_removed_since(self.store, since_ms, self.key), enough))

    def _rehearse_batch(self, batch: Sequence[PlannedObject], outcome: RemovalOutcome) -> None:
        looked_at = in_parallel(self.store, lambda planned: look(self.store, planned), batch)
        for error in filter(None, (one.error for one in looked_at)):
            raise error
        removable = [(one.planned, one.found) for one in looked_at if one.found is not None]
        outcome.skipped += len(batch) - len(removable)
        self.owners.demand_removable(removable, self.limits)


@dataclass(frozen=True, slots=True)
class PlanUser:
    """Everything needed to apply a plan."""

    plan: PlanFile
    store: WritableObjectStore
    owners: Owners
    open_receipts: Callable[[ReceiptsHeader, bool], Receipts]
    """(the plan's header, whether an earlier run left receipts that must exist) -> the plan's receipts."""
    clock_ms: Callable[[], int]
    limits: Limits
    pace: Callable[[int], None] = lambda _objects: None
    tell: Callable[[RemovalOutcome], None] = lambda _result: None
    without_lease: bool = False
    batch_objects: int | None = None
    delete_versions: bool = False
    key: bytes | None = None
    """Seals notes of original times, and checks their seals."""
    purpose: str = "orphans apply"
    """The command, as whoever waits for the lease is told."""

    def run(self) -> RemovalOutcome:
        """Removes what is planned, or what earlier runs left of it. Raises TieredctlError if nothing may be removed.

        Nothing more is removed for a plan that expired after an earlier run began it, or where promised objects are
        missing; but what got an owner is put back.
        """
        check = self._check
        ledger = Ledger(self.store, check.record(), self.plan.header.plan_id)
        expired = check.expired()
        if expired is not None and ledger.use() is None:
            raise expired
        # Before the lease, which is shorter than the listing of a large store.
        forbidden = expired or check.lost_promises()
        with lease_held(self.store, self.purpose, self.clock_ms, unguarded=self.without_lease) as lease:
            before = check.demand_unused()
            self.owners.refresh()
            if before is None:
                check.demand_fit()
                if forbidden is not None:
                    raise forbidden
            receipts = self.open_receipts(receipts_header(self.plan), before is not None)
            ledger.record(PlanUse.APPLYING)
            result = self._removal(receipts, lease).run(forbidden)
            if result.nothing_is_there:
                try:
                    with critical_section():
                        ledger.record(PlanUse.APPLIED)
                        forget_original_times(self.store, self.key, TIMES_OF_RESTORED)
                        mark_complete()
                except TieredctlError as error:
                    result.stopped = error  # what was removed is told all the same
            return result

    def _removal(self, receipts: Receipts, lease: Hold) -> Removal:
        removal = Removal(
            *(self.plan, self.store, receipts, lease, self.owners, self.clock_ms, self.limits, self.pace, self.tell)
        )
        removal.delete_versions, removal.key = self.delete_versions, self.key
        if self.batch_objects is not None:
            removal.batch_objects = self.batch_objects
        return removal

    @property
    def _check(self) -> PlanCheck:
        return PlanCheck(*(self.plan, self.store, self.owners, self.clock_ms, self.limits, self.key))


def receipts_header(plan: PlanFile) -> ReceiptsHeader:
    """The header of a plan's receipts."""
    header = plan.header
    return ReceiptsHeader(header.plan_id, plan.digest, header.cluster_id, header.store, header.layout, header.mode)

"""Puts back what a plan removed, by its receipts and its quarantine, or by the quarantine alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import PlanUse, QuarantinedCopy, Receipt, ReceiptsHeader, ReceiptStep, RemovalMode
from tieredctl.ops.change import Outcome
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold, lease_held
from tieredctl.ops.guards.ledger import Ledger, plan_record, record_of
from tieredctl.ops.guards.original_times import (
    NO_ORIGINAL_TIMES,
    OriginalTimes,
    forget_original_times,
    read_original_times,
)
from tieredctl.ops.guards.own_objects import TIMES_OF_RESTORED, times_of_copies
from tieredctl.ops.guards.quarantine_keys import copies_by_plan, copies_of, quarantined
from tieredctl.ops.orphan_removal.preparation import Evidence
from tieredctl.ops.orphan_removal.putting_back import failed, note_times, put_back, would_be_put_back
from tieredctl.ops.orphan_removal.receipts import Receipts, ReceiptsInMemory, StoredReceipts, last_receipts
from tieredctl.ops.verification.removed_keys import keys_removed_by, note_put_back
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, Capability, WritableObjectStore
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.progress import note

_BATCH_OBJECTS = 500
_WITHOUT_A_COPY = (ReceiptStep.DELETING, ReceiptStep.GONE, ReceiptStep.FAILED)


@dataclass(slots=True, kw_only=True)
class RestoreOutcome(Outcome):
    """How far a removal was undone. Planned is what was removed; skipped are objects that were gone before."""

    skipped_are_settled: ClassVar[bool] = True
    damaged: list[str] = field(default_factory=list)
    """The receipts that cannot be read: what they covered is known only by its copies."""
    failures: list[Receipt] = field(default_factory=list)
    """The failures of a rehearsal: what would fail, as it would be recorded."""
    unverified: int = 0
    """Objects that were put back although nothing tells whether these are the bytes that were removed."""

    @property
    def others_left(self) -> int:
        return len(self.damaged)


@dataclass(slots=True)
class Restore:
    """One run that undoes a removal. The copies stay in quarantine until they are purged: a suspended run of the plan
    may wake up between two of its steps, and delete again.

    Whatever is in quarantine is put back, with or without a receipt; if receipts and quarantine disagree about where a
    copy is, the quarantine is right.
    """

    store: WritableObjectStore
    receipts: Receipts
    clock_ms: Callable[[], int]
    without_lease: bool = False
    key: bytes | None = None
    """Seals notes of original times, and checks the seals of what the copies hold; without it, restored objects may
    look young, or are unverified."""
    accept_unverified: bool = False
    """Whether to put back copies of which nothing tells whether they hold what was removed."""
    _times: OriginalTimes = NO_ORIGINAL_TIMES
    """The original times of the copies."""

    def run(self) -> RestoreOutcome:
        """Puts back what is not back yet. Raises TieredctlError if nothing may be changed."""
        result = RestoreOutcome()
        header = self.receipts.header
        self.receipts.demand_writable()
        with lease_held(self.store, "orphans restore", self.clock_ms, unguarded=self.without_lease) as lease:
            Ledger(self.store, record_of(header), header.plan_id).record(PlanUse.RESTORED)
            try:
                self._times = read_original_times(self.store, self.key, times_of_copies(header.plan_id))
                evidence, batches = self._evidence(), [*self._batches(result)]
                for number, batch in enumerate(batches, 1):
                    with critical_section():
                        self._restore(batch, lease, result, evidence)
                        if number == len(batches):
                            mark_complete()
            except TieredctlError as error:
                result.stopped = error
            if result.is_complete:
                forget_original_times(self.store, self.key, TIMES_OF_RESTORED)
        return result

    def rehearse(self) -> RestoreOutcome:
        """What would be put back, as planned, and what would fail: nothing is written, and no lease taken."""
        result = RestoreOutcome()
        evidence = self._evidence()

        def size_of(receipt: Receipt) -> int | TieredctlError | None:
            try:
                return would_be_put_back(self.store, receipt, evidence)
            except TieredctlError as error:
                if error.code in CONCERN_EVERY_OBJECT:
                    raise
                return error

        for batch in self._batches(result):
            for receipt, size in zip(batch, in_parallel(self.store, size_of, batch), strict=True):
                if isinstance(size, TieredctlError):
                    result.failed += 1
                    result.failures.append(failed(receipt, self.clock_ms(), size))
                elif size is not None:
                    result.planned += 1
                    result.bytes += size
        return result

    def _evidence(self) -> Evidence:
        plan_id, are_beside = self.receipts.header.plan_id, self.receipts.are_beside_copies
        return Evidence(self.store, self.key, plan_id, are_beside, self.accept_unverified)

    def _batches(self, result: RestoreOutcome) -> Iterator[list[Receipt]]:
        entries = self.receipts.entries(result.damaged.append)
        last = last_receipts(receipt for receipt in entries if receipt.upload_id is None)
        copies = copies_of(self.store, self.receipts.header)
        # What lost receipts may have covered.
        for key in keys_removed_by(self.store, self.receipts.header.plan_id):
            last.setdefault(key, Receipt(ReceiptStep.DELETING, key, 0))
        result.skipped = sum(receipt.step is ReceiptStep.GONE and key not in copies for key, receipt in last.items())
        for key, of_key in copies.items():
            last_receipt = last.get(key)
            was_not_copied = last_receipt is None or (
                last_receipt.step is ReceiptStep.FAILED and last_receipt.copy is None
            )
            # Such a copy may be bad. If its original is gone nevertheless, it is all there is.
            if was_not_copied and self.store.head(key) is not None:
                continue
            last[key] = _with_copy(last_receipt, key, of_key)
        removed = iter([one for one in last.values() if self._may_be_gone(one)])
        while batch := list(islice(removed, _BATCH_OBJECTS)):
            yield batch

    def _restore(self, batch: Sequence[Receipt], lease: Hold, result: RestoreOutcome, evidence: Evidence) -> None:
        lease.renew()
        put = in_parallel(
            self.store, lambda one: put_back(self.store, one, self.clock_ms(), evidence, self._times), batch
        )
        back = [one.receipt for one in put]
        self.receipts.append([after for after, before in zip(back, batch, strict=True) if after is not before])
        restored = [one for one in back if one.step is ReceiptStep.RESTORED]
        note_put_back(self.store, self.receipts.header.plan_id, [one.key for one in restored])
        note_times(self.store, self.key, put)
        result.planned += len(batch)
        result.done += len(restored)
        result.bytes += sum(one.size for one in restored)
        result.failed += sum(one.step is ReceiptStep.FAILED for one in back)
        result.unverified += sum(one.is_unverified for one in put)
        note("objects put back", result.done)

    def _may_be_gone(self, receipt: Receipt) -> bool:
        """Because of the removal. What could not even be copied is where it was."""
        if receipt.step is ReceiptStep.FAILED and receipt.copy is None:
            return self.receipts.header.mode is RemovalMode.DELETE
        return receipt.step is not ReceiptStep.GONE


def receipts_from_quarantine(store: WritableObjectStore, plan_id: str, *, are_kept: bool) -> Receipts:
    """New, empty receipts for a plan whose own are lost; kept in the store, or only here.

    Raises TieredctlError `path-missing` if the store has nothing of such a plan.
    """
    copy = next(copies_by_plan(store, None, plan_id), None)
    if copy is None and next(keys_removed_by(store, plan_id), None) is None:
        message = f"{store.url} has no receipts of plan {plan_id}, and no quarantined objects of it."
        raise TieredctlError(
            ErrorCode.PATH_MISSING, message, hint="`tieredctl orphans quarantine ls` lists what is in quarantine."
        )
    try:
        record = plan_record(store, plan_id)
    except TieredctlError as error:
        if error.code is not ErrorCode.LEDGER_DAMAGED:
            raise
        record = None
    cluster_id = (copy and copy[1].cluster_id) or (record and record.cluster_id) or ""
    header = ReceiptsHeader(
        plan_id,
        (record and record.plan_digest) or "",
        cluster_id,
        store.url,
        record.layout if record else "",
        RemovalMode.QUARANTINE if copy is not None else RemovalMode.DELETE,
    )
    if are_kept and Capability.CONDITIONAL_WRITE in store.capabilities:
        return StoredReceipts.begun(store, header)
    return ReceiptsInMemory(header)


def _with_copy(last_receipt: Receipt | None, key: str, copies: Sequence[QuarantinedCopy]) -> Receipt:
    """What to put back, from one of its copies: the one that receipts name, or the only one."""
    receipt = last_receipt or Receipt(ReceiptStep.COPIED, key, 0)
    named = [copy for copy in copies if receipt.copy is not None and copy.key == receipt.copy.key]
    if named:
        # What is in quarantine was there when it was copied, whatever a receipt calls it.
        return receipt._replace(step=ReceiptStep.COPIED) if receipt.step is ReceiptStep.GONE else receipt
    if len(copies) == 1:
        step = ReceiptStep.COPIED if receipt.step in _WITHOUT_A_COPY else receipt.step
        original, modified_ms = quarantined(copies[0].key), receipt.modified_ms
        if modified_ms is None and original is not None:
            modified_ms = original.last_modified_ms
        return receipt._replace(step=step, copy=copies[0], modified_ms=modified_ms)
    return receipt._replace(step=ReceiptStep.COPIED, copy=None)

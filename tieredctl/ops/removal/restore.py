"""Puts back, from its receipts, what a plan removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tieredctl.errors import TieredctlError
from tieredctl.model.removal import PlanUse, Receipt, ReceiptStep, RemovalMode
from tieredctl.ops.removal.in_parallel import in_parallel
from tieredctl.ops.removal.lease import Hold, lease_held
from tieredctl.ops.removal.ledger import Ledger, record_of
from tieredctl.ops.removal.putting_back import put_back
from tieredctl.ops.removal.receipts import Receipts, last_receipts
from tieredctl.ops.removal.removed_keys import note_put_back
from tieredctl.storage.protocol import WritableObjectStore

_BATCH_OBJECTS = 500


@dataclass(slots=True)
class RestoreResult:
    """How far a removal was undone, by this run and those before it."""

    planned: int = 0
    """All that was removed."""
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Those that were not there to be removed."""
    bytes: int = 0
    stopped: TieredctlError | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all that was removed is back."""
        return self.stopped is None and not self.failed


@dataclass(slots=True)
class Restore:
    """One run that undoes a removal. The copies stay in quarantine until they are purged: a run of the plan that was
    stopped for long may wake up between two of its steps, and delete once more."""

    store: WritableObjectStore
    receipts: Receipts
    clock_ms: Callable[[], int]
    without_lease: bool = False

    def run(self) -> RestoreResult:
        """Puts back what is not back yet. Raises TieredctlError where nothing may be changed."""
        result = RestoreResult()
        header = self.receipts.header
        with lease_held(self.store, "orphans restore", self.clock_ms, unguarded=self.without_lease) as lease:
            Ledger(self.store, record_of(header), header.plan_id).record(PlanUse.RESTORED)
            try:
                for batch in self._batches(result):
                    self._restore(batch, lease, result)
            except TieredctlError as error:
                result.stopped = error
        return result

    def _batches(self, result: RestoreResult) -> Iterator[list[Receipt]]:
        objects = (receipt for receipt in self.receipts.entries() if receipt.upload_id is None)
        last = last_receipts(objects)
        result.skipped = sum(receipt.step is ReceiptStep.GONE for receipt in last.values())
        removed = iter([one for one in last.values() if self._may_be_gone(one)])
        while batch := list(islice(removed, _BATCH_OBJECTS)):
            yield batch

    def _restore(self, batch: Sequence[Receipt], lease: Hold, result: RestoreResult) -> None:
        lease.renew()
        back = self._put_back(batch)
        self.receipts.append([after for after, before in zip(back, batch, strict=True) if after is not before])
        restored = [one for one in back if one.step is ReceiptStep.RESTORED]
        note_put_back(self.store, self.receipts.header.plan_id, [one.key for one in restored])
        result.planned += len(batch)
        result.done += len(restored)
        result.bytes += sum(one.size for one in restored)
        result.failed += sum(one.step is ReceiptStep.FAILED for one in back)

    def _put_back(self, removed: Sequence[Receipt]) -> list[Receipt]:
        def one_back(receipt: Receipt) -> Receipt:
            # A run of the plan that woke up since may have deleted it once more.
            if receipt.step is ReceiptStep.RESTORED and self.store.head(receipt.key) is not None:
                return receipt
            return put_back(self.store, receipt, self.clock_ms())

        return in_parallel(self.store, one_back, removed)

    def _may_be_gone(self, receipt: Receipt) -> bool:
        """By the removal. What could not even be copied is where it was."""
        if receipt.step is ReceiptStep.FAILED and receipt.copy is None:
            return self.receipts.header.mode is RemovalMode.DELETE
        return receipt.step is not ReceiptStep.GONE

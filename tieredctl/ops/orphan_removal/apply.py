"""Applies a plan: copies each object to quarantine, checks the metadata again, and deletes.

An object is deleted only if metadata that was read after it was copied still calls it orphaned, while the lease is
held, and only in the version that was planned. Every step is on record before the next is taken, so that another run
can resume after an interruption at any moment. At the end the metadata is checked for everything that was removed:
what has an owner after all is put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import (
    FINISHED_STEPS,
    OriginalTime,
    Planned,
    PlannedObject,
    PlannedUpload,
    Receipt,
    ReceiptStep,
)
from tieredctl.ops.change import Outcome, stopped_twice
from tieredctl.ops.guards.deletion import delete_surely
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.kept_versions import DeletedVersions, delete_versions, keys_left
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.guards.original_times import note_original_times, read_original_times
from tieredctl.ops.guards.own_objects import times_of_copies
from tieredctl.ops.guards.sealed_notes import note_bytes
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.owners import Owners, having_owners
from tieredctl.ops.orphan_removal.plan_file import PlanFile
from tieredctl.ops.orphan_removal.preparation import Evidence, Preparation, Prepared, look, written_since
from tieredctl.ops.orphan_removal.putting_back import failed, not_in_its_place, note_times, put_back
from tieredctl.ops.orphan_removal.receipts import Receipts, last_receipts, remember
from tieredctl.ops.verification.removed_keys import note_put_back, note_removed
from tieredctl.ports.object_store import (
    CONCERN_EVERY_OBJECT,
    Deletion,
    DeletionOutcome,
    MultipartUpload,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.process.interruption import critical_section, mark_complete

BATCH_OBJECTS = 500
"""How many objects are copied before the metadata is read again. At most MOST_DELETED_AT_ONCE."""
BATCH_BYTES = 16 << 30
_Planned = TypeVar("_Planned", PlannedObject, PlannedUpload)


@dataclass(slots=True, kw_only=True)
class RemovalOutcome(Outcome):
    """How far a plan was applied. Skipped are objects that were gone already."""

    put_back: int = 0
    """Objects that got an owner after they were removed, and are back."""
    lost: list[str] = field(default_factory=list)
    """The keys of objects that got an owner after they were removed, and could not be put back."""
    versions: DeletedVersions | None = None
    """The kept versions that were deleted, if that was asked for."""

    @property
    def others_left(self) -> int:
        return keys_left(self.versions)

    @property
    def nothing_is_there(self) -> bool:
        """Whether nothing of the plan is left to remove, whoever removed it."""
        return self.stopped is None and not self.failed and not self.lost and not keys_left(self.versions)

    def count(self, receipts: Iterable[Receipt]) -> None:
        """Counts what became of some."""
        for receipt in receipts:
            if receipt.step in (ReceiptStep.REMOVED, ReceiptStep.ABORTED):
                self.done += 1
                self.bytes += receipt.size
            elif receipt.step is ReceiptStep.FAILED:
                self.failed += 1
            else:
                self.skipped += 1


@dataclass(slots=True)
class Removal:
    """One run of a plan."""

    plan: PlanFile
    store: WritableObjectStore
    receipts: Receipts
    lease: Hold
    owners: Owners
    clock_ms: Callable[[], int]
    limits: Limits
    pace: Callable[[int], None] = lambda _objects: None
    """Called with the number of objects that come next; waits to keep to a rate."""
    tell: Callable[[RemovalOutcome], None] = lambda _result: None
    """Called with what was done so far."""
    batch_objects: int = BATCH_OBJECTS
    delete_versions: bool = False
    """Whether to delete the kept versions of removed objects too; the copies in quarantine stay."""
    key: bytes | None = None
    """Seals the notes of copied objects' original times."""
    _last: dict[str, Receipt] = field(default_factory=dict)
    """The last receipt of each object, by key, and of each upload, by its id."""
    _unfinished: int = 0
    """How many objects and uploads this run has still to come to the end of."""
    _obstacle: TieredctlError | None = None
    """Why to stop once what was done is counted."""

    def run(self, forbidden: TieredctlError | None = None) -> RemovalOutcome:
        """Removes what is left to remove, or nothing if `forbidden` says why not; and puts back what got an owner.
        Whatever stops it is in the result."""
        totals = self.plan.totals
        result = RemovalOutcome(planned=totals.objects + totals.uploads)
        try:
            self._last = last_receipts(self.receipts.entries())
            finished = sum(one.step in FINISHED_STEPS for one in self._last.values())
            self._unfinished = result.planned - finished
            if forbidden is not None:
                raise forbidden
            self._remove_all(result)
        except TieredctlError as error:
            result.stopped = error
        if result.stopped is None or result.stopped.code is not ErrorCode.LEASE_LOST:
            try:
                with critical_section():
                    self._put_owned_back(result)
                    self.owners.conclude(self.store, self._gone(), self.lease)
                    self._note_end()
                if self.delete_versions and result.nothing_is_there:
                    result.versions = self._delete_versions()
            except TieredctlError as error:
                result.stopped = stopped_twice(result.stopped, error)
        return result

    def _gone(self) -> Iterator[str]:
        return (one.key for one in self._last.values() if one.step in (ReceiptStep.REMOVED, ReceiptStep.GONE))

    def _delete_versions(self) -> DeletedVersions:
        """Deletes the versions of everything that was removed and not put back."""
        self.lease.renew()
        return delete_versions(self.store, [one.key for one in self._last.values() if one.step is ReceiptStep.REMOVED])

    def _remove_all(self, result: RemovalOutcome) -> None:
        for objects in self._left(self.plan.objects(), result):
            self._note(self._remove(objects), result)
        for uploads in self._left(self.plan.uploads(), result):
            self._note(self._give_up(uploads), result)

    def _left(self, planned: Iterable[_Planned], result: RemovalOutcome) -> Iterator[list[_Planned]]:
        """What no run has finished, in batches; what is finished is counted."""

        def unfinished() -> Iterator[_Planned]:
            for one in planned:
                before = self._before(one)
                if before is not None and before.step in FINISHED_STEPS:
                    result.count([before])
                else:
                    yield one

        for batch in _batches(unfinished(), self.batch_objects):
            self.pace(len(batch))
            self._unfinished -= len(batch)
            yield batch

    def _note_end(self) -> None:
        """Records that nothing of the plan is left to remove; what got an owner is still put back."""
        if not self.delete_versions:
            mark_complete()

    def _before(self, planned: Planned) -> Receipt | None:
        return self._last.get(planned.upload_id if isinstance(planned, PlannedUpload) else planned.key)

    def _note(self, receipts: Sequence[Receipt], result: RemovalOutcome) -> None:
        result.count(receipts)
        self.tell(result)
        if self._obstacle is not None:
            raise self._obstacle
        if all(receipt.step is ReceiptStep.FAILED for receipt in receipts):
            raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"None of a batch could be removed: {receipts[0].error}")

    def _record(self, receipts: Sequence[Receipt]) -> None:
        self.receipts.append(receipts)
        remember(self._last, receipts)

    def _remove(self, batch: Sequence[PlannedObject]) -> list[Receipt]:
        """Removes a batch: a receipt for each of its objects."""
        prepared = self._prepared(batch)
        doomed = [one for one in prepared if one.step is None]
        finished = [self._receipt(one, one.step) for one in prepared if one.step is not None]
        intents = [self._receipt(one, ReceiptStep.COPIED if one.copy else ReceiptStep.DELETING) for one in doomed]
        if any(receipt.step is ReceiptStep.GONE for receipt in finished):
            self.lease.renew()  # otherwise another run of this plan may have removed it
        self._record([*finished, *intents])
        self._obstacle = _hopeless(one.error for one in prepared)
        if doomed and self._obstacle is None:
            self._note_copies(doomed)
            finished += self._delete(doomed)
        return finished

    def _note_copies(self, copied: Sequence[Prepared]) -> None:
        """Notes which bytes the copies hold, and the originals' times, in case they are put back."""
        plan_id = self.plan.header.plan_id
        note_bytes(self.store, self.key, plan_id, [one.copied for one in copied if one.copied is not None])
        times = [
            OriginalTime(copy.key, copy.size, copy.last_modified_ms, copy.version, self.owners.modified_ms(original))
            for copy, original in ((one.copy, one.found) for one in copied)
            if copy is not None and original is not None
        ]
        note_original_times(self.store, self.key, times_of_copies(plan_id), times)

    def _evidence(self) -> Evidence:
        """The evidence of what this and earlier runs removed, as it is on record now."""
        return Evidence(self.store, self.key, self.plan.header.plan_id, self.receipts.are_beside_copies)

    def _prepared(self, batch: Sequence[PlannedObject]) -> list[Prepared]:
        """The batch made ready for deletion, once every object of it was found removable."""
        header = self.plan.header
        preparation = Preparation(self.store, header.cluster_id, header.plan_id, header.mode, self._evidence())
        looked_at = in_parallel(self.store, lambda planned: look(self.store, planned), batch)
        self._demand_removable(looked_at)
        return in_parallel(self.store, lambda one: preparation.prepare(one, self._before(one.planned)), looked_at)

    def _demand_removable(self, prepared: Sequence[Prepared]) -> None:
        removable = [(one.planned, one.found) for one in prepared if one.found is not None]
        self.owners.demand_removable(removable, self.limits)

    def _delete(self, doomed: Sequence[Prepared]) -> list[Receipt]:
        self.owners.refresh()
        self._demand_removable(doomed)
        return self._delete_and_record(doomed)

    @critical_section()
    def _delete_and_record(self, doomed: Sequence[Prepared]) -> list[Receipt]:
        note_removed(self.store, self.key, self.plan.header.plan_id, [one.planned.key for one in doomed])
        objects = [one.found for one in doomed if one.found is not None]
        self.owners.announce(self.store, objects, self.lease)
        self.lease.renew()
        deletions = delete_surely(self.store, objects)
        receipts = [self._deleted(one, deletion) for one, deletion in zip(doomed, deletions, strict=True)]
        self._record(receipts)
        changed = (one for one in deletions if one.outcome is DeletionOutcome.CHANGED)
        self._obstacle = _hopeless(one.error for one in deletions)
        for deletion in changed:
            self._obstacle = written_since(deletion.stored.key)
        if self._unfinished <= 0:
            self._note_end()
        return receipts

    def _deleted(self, one: Prepared, deletion: Deletion) -> Receipt:
        if deletion.outcome is DeletionOutcome.GONE:
            return self._receipt(one, ReceiptStep.REMOVED)
        error = deletion.error or written_since(one.planned.key)
        return failed(self._receipt(one, ReceiptStep.FAILED), self.clock_ms(), error)

    def _receipt(self, one: Prepared, step: ReceiptStep) -> Receipt:
        if one.error is not None:
            return failed(Receipt(step, one.planned.key, 0), self.clock_ms(), one.error)
        return one.receipt(step, self.clock_ms())

    @critical_section()
    def _give_up(self, uploads: Sequence[PlannedUpload]) -> list[Receipt]:
        self.owners.refresh()
        self.owners.demand_endable(in_parallel(self.store, self._begun_upload, uploads), self.limits)
        self.lease.renew()
        receipts = [self._given_up(upload) for upload in uploads]
        self._record(receipts)
        if self._unfinished <= 0:
            self._note_end()
        return receipts

    def _begun_upload(self, planned: PlannedUpload) -> StoredObject:
        """The object that it would become, dated by when the upload began; by the epoch if there is no such upload."""
        uploads = (one for one in self.store.multipart_uploads(planned.key) if one.upload_id == planned.upload_id)
        return StoredObject(planned.key, 0, max((one.initiated_ms for one in uploads), default=0), "")

    def _given_up(self, upload: PlannedUpload) -> Receipt:
        try:
            begun = MultipartUpload(upload.key, upload.upload_id, upload.initiated_ms)
            self.store.abort_multipart_upload(begun)
            if self.store.multipart_upload_bytes(begun):
                message = f"{self.store.url} reported an upload of {upload.key} as aborted, but its parts still exist."
                raise TieredctlError(ErrorCode.REMOVAL_FAILED, message)
        except TieredctlError as error:
            unfinished = Receipt(ReceiptStep.FAILED, upload.key, 0, upload_id=upload.upload_id)
            return failed(unfinished, self.clock_ms(), error)
        return Receipt(ReceiptStep.ABORTED, upload.key, self.clock_ms(), upload.size, upload_id=upload.upload_id)

    def _put_owned_back(self, result: RemovalOutcome) -> None:
        """Checks everything that any run removed, recorded or not, for owners, until no other has one."""
        tried: set[str] = set()
        try:
            while gone := [one for one in self._all_to_put_back() if one.key not in tried]:
                self.lease.renew()
                tried |= {one.key for one in gone}
                self._put_back(gone, result)
        finally:
            # What its broker deleted while it was being put back no longer has an owner.
            not_back = [one for one in self._last.values() if one.key in tried and one.step is ReceiptStep.FAILED]
            result.lost = [one.key for one in self._having_owners(not_back)] if not_back else []
            result.findings += [not_in_its_place(key, self.store.url) for key in result.lost]

    def _all_to_put_back(self) -> Iterator[Receipt]:
        for receipts in self._begun():
            yield from self._to_put_back(receipts)

    def _to_put_back(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Receipts of objects that have an owner by metadata that was read after they were found gone: what its broker
        deleted meanwhile no longer has one. And those that an earlier run put back before it was killed, without
        recording it."""
        gone: list[Receipt] = []
        were_owned: dict[str, Receipt] = {}
        while True:
            before, owned = gone, self._owned(receipts)
            gone = [one for one in owned if one.step is ReceiptStep.REMOVED or self.store.head(one.key) is None]
            if gone == before:
                break
            were_owned |= {one.key: one for one in gone}
        for one in gone:
            del were_owned[one.key]
        return gone + [one for one in were_owned.values() if self.store.head(one.key) is not None]

    def _owned(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        """The receipts of objects that have an owner by the metadata of now."""
        self.owners.refresh()
        return self._having_owners(receipts)

    def _having_owners(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Receipts of objects that have an owner by the metadata that was read last."""
        return having_owners(self.owners, receipts, lambda one: StoredObject(one.key, one.size, 0, ""))

    @critical_section()
    def _put_back(self, gone: Sequence[Receipt], result: RemovalOutcome) -> None:
        note_put_back(self.store, self.plan.header.plan_id, [one.key for one in gone])
        times = read_original_times(self.store, self.key, times_of_copies(self.plan.header.plan_id))
        evidence = self._evidence()
        put = [put_back(self.store, one, self.clock_ms(), evidence, times) for one in gone]
        back = [one.receipt for one in put]
        self._record(back)
        note_times(self.store, self.key, put)
        result.put_back += sum(one.step is ReceiptStep.RESTORED for one in back)

    def _begun(self) -> Iterator[list[Receipt]]:
        ended = (ReceiptStep.GONE, ReceiptStep.RESTORED)
        begun = iter([one for one in self._last.values() if one.upload_id is None and one.step not in ended])
        while batch := list(islice(begun, 100_000)):
            yield batch


def _batches(planned: Iterable[_Planned], most: int) -> Iterator[list[_Planned]]:
    """At most `most` at a time, and few enough bytes to copy before the lease expires."""
    batch: list[_Planned] = []
    size = 0
    for one in planned:
        if batch and (len(batch) == most or size + one.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch


def _hopeless(errors: Iterable[TieredctlError | None]) -> TieredctlError | None:
    """The first of them that every other object would meet too."""
    return next((error for error in errors if error is not None and error.code in CONCERN_EVERY_OBJECT), None)

"""Empties the quarantine of what has been there for long: the one step that cannot be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tieredctl.errors import TieredctlError
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.removal.deletion import delete_surely
from tieredctl.ops.removal.fresh_metadata import FreshMetadata
from tieredctl.ops.removal.lease import Hold, lease_held
from tieredctl.ops.removal.ledger import plan_record
from tieredctl.ops.removal.own_objects import QUARANTINE, original_key
from tieredctl.storage.protocol import MOST_DELETED_AT_ONCE, DeletionOutcome, StoredObject, WritableObjectStore

_KEPT = (ObjectStatus.OWNED, ObjectStatus.IN_PROGRESS)


@dataclass(slots=True)
class PurgeResult:
    """What became of the copies in quarantine that are old enough."""

    planned: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Those that have an owner by now, or may get one."""
    bytes: int = 0
    owned: list[str] = field(default_factory=list)
    """The keys of those that have an owner: they should be restored."""
    stopped: TieredctlError | None = None


@dataclass(slots=True)
class Purge:
    """One run over the quarantine of a store."""

    store: WritableObjectStore
    metadata: FreshMetadata
    cluster_id: str
    older_than_ms: int
    clock_ms: Callable[[], int]
    without_lease: bool = False

    def rehearse(self) -> PurgeResult:
        """Looks what would be deleted, and changes nothing."""
        result = PurgeResult()
        for batch in self._batches():
            self._demand_unowned(batch, result)
        return result

    def run(self) -> PurgeResult:
        """Deletes the copies that are old enough and still nobody's."""
        result = PurgeResult()
        with lease_held(self.store, "orphans purge", self.clock_ms, unguarded=self.without_lease) as lease:
            try:
                for batch in self._batches():
                    self._purge(batch, lease, result)
            except TieredctlError as error:
                result.stopped = error
        return result

    def _batches(self) -> Iterator[list[tuple[StoredObject, str]]]:
        """Old copies with the keys of what they are copies of."""
        newest_ms = self.clock_ms() - self.older_than_ms
        # Put aside: a listing that things are deleted from is not to be trusted.
        found = [
            (copy, original)
            for copy in self.store.list(QUARANTINE)
            if copy.last_modified_ms <= newest_ms and (original := original_key(copy.key))
        ]
        for plan_id in {plan_id for _, (plan_id, _) in found}:
            self._demand_made_for(plan_id)
        copies = ((copy, key) for copy, (_, key) in found)
        while batch := list(islice(copies, MOST_DELETED_AT_ONCE)):
            yield batch

    def _demand_made_for(self, plan_id: str) -> None:
        """Raises TieredctlError where the store remembers a plan as one of another cluster or layout: what it removed
        would look like nobody's to this one."""
        record = plan_record(self.store, plan_id)
        if record is None:
            return
        if record.cluster_id != self.cluster_id:
            message = f"Plan {plan_id} removed objects of cluster {record.cluster_id}, not of {self.cluster_id}."
            raise TieredctlError("another-cluster", message, hint="Give the metadata of that cluster.")
        if record.layout != self.metadata.layout.name:
            message = f"Plan {plan_id} removed objects of layout {record.layout}, not of {self.metadata.layout.name}."
            raise TieredctlError("usage", message, hint=f"Give --layout {record.layout}.")

    def _demand_unowned(self, batch: Sequence[tuple[StoredObject, str]], result: PurgeResult) -> list[StoredObject]:
        """The copies whose originals are nobody's by what the metadata says now."""
        self.metadata.refresh()
        verdicts = self.metadata.verdicts(StoredObject(key, copy.size, 0, "") for copy, key in batch)
        result.planned += len(batch)
        doomed = []
        for (copy, key), (status, _) in zip(batch, verdicts, strict=True):
            # Where the original is in its place, the copy is one too many, whosever it is.
            if not self._may_be_somebodys(key, status) or self.store.head(key) is not None:
                doomed.append(copy)
            else:
                result.skipped += 1
                result.owned += [key] if status is ObjectStatus.OWNED else []
        return doomed

    def _may_be_somebodys(self, key: str, status: ObjectStatus) -> bool:
        if self.metadata.partitions_are_sure or self.metadata.layout.explain(key) is None:
            return status in _KEPT
        return status is not ObjectStatus.ORPHAN

    def _purge(self, batch: Sequence[tuple[StoredObject, str]], lease: Hold, result: PurgeResult) -> None:
        doomed = self._demand_unowned(batch, result)
        lease.renew()
        for deletion in delete_surely(self.store, doomed):
            if deletion.outcome is DeletionOutcome.GONE:
                result.done += 1
                result.bytes += deletion.stored.size
            else:
                result.failed += 1

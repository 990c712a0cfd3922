"""Deletes old copies from the quarantine: the one step that cannot be undone.

It deletes only copies of the cluster whose metadata is read, and only of objects that this metadata, complete and
matching the store, still calls orphaned, or that a plan removed by name. Whatever ends a run, the metadata is read once
more: what got an owner while it was deleted is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.key_text import key_text
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.removal import PlanRecord
from tieredctl.ops.change import Outcome, stopped_twice
from tieredctl.ops.guards.comparison import same_bytes
from tieredctl.ops.guards.deletion import delete_surely
from tieredctl.ops.guards.kept_versions import DeletedVersions, delete_versions, keys_left
from tieredctl.ops.guards.lease import Hold, lease_held
from tieredctl.ops.guards.ledger import plan_record
from tieredctl.ops.guards.original_times import forget_original_times
from tieredctl.ops.guards.own_objects import TIMES_OF_COPIES
from tieredctl.ops.guards.quarantine_keys import Quarantined, copies_in_quarantine, quarantined
from tieredctl.ops.guards.sealed_notes import forget_noted_bytes
from tieredctl.ops.guards.second_reading import head_again
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ops.orphan_removal.limits import demand_percent
from tieredctl.ops.orphan_removal.owners import Owners, having_owners
from tieredctl.ops.orphan_removal.putting_back import not_in_its_place
from tieredctl.ops.remote.listing import SpooledBatches, SpooledListing
from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    DeletionOutcome,
    ObjectStore,
    StoredObject,
    WritableObjectStore,
    list_unreserved,
)
from tieredctl.process.interruption import cleanup_section, critical_section, mark_complete
from tieredctl.process.progress import note

LEAST_AGE_MS = 3_600_000
"""What has been in quarantine for less may be purged only on explicit request."""
_AT_ONCE = 10_000
_Pair = tuple[StoredObject, Quarantined]
"""A copy, and what it is a copy of."""


@dataclass(slots=True, kw_only=True)
class PurgeOutcome(Outcome):
    """What happened to the copies in quarantine that are old enough. Skipped are copies of objects that now have
    an owner, or may have or get one."""

    owned: list[str] = field(default_factory=list)
    """The keys of those that have an owner: they should be restored."""
    lost: list[str] = field(default_factory=list)
    """The keys of objects that got an owner while their copies were deleted, and are nowhere now."""
    replaced: int = 0
    """Copies of objects that have an owner and are in their places with other bytes, as `heal` leaves them: kept until
    nobody owns those."""
    unproven: int = 0
    """Old enough, but neither their keys nor the store's record of their plan names their cluster: kept."""
    young: int = 0
    """Copies of this cluster that are not old enough yet."""
    young_bytes: int = 0
    oldest_young_ms: int | None = None
    """When the first of these came into quarantine."""
    newest_ms: int = 0
    """Copies are old enough that came into quarantine until then."""
    found: int = 0
    """How many of those planned a rehearsal would delete."""
    found_bytes: int = 0
    versions: DeletedVersions | None = None
    """The kept versions that were deleted, if that was asked for."""

    def keep_young(self, copy: StoredObject) -> None:
        """Counts a copy that is not old enough yet."""
        self.young += 1
        self.young_bytes += copy.size
        self.oldest_young_ms = min(copy.last_modified_ms, self.oldest_young_ms or copy.last_modified_ms)

    @property
    def others_left(self) -> int:
        return len(self.lost) + self.unproven + keys_left(self.versions)


@dataclass(slots=True)
class PurgeCheck:
    """Checks which copies in the quarantine of a store may be purged. Changes nothing."""

    store: ObjectStore
    owners: Owners
    cluster_id: str
    older_than_ms: int
    clock_ms: Callable[[], int]
    """The host's."""
    max_percent: float = field(default=100.0, kw_only=True)
    """The share of all objects in the store, the quarantine included: more is refused."""
    not_after_ms: int = field(default=sys.maxsize, kw_only=True)
    """What came into quarantine later stays, however old: nobody was shown it."""
    is_meant: Callable[[StoredObject, Quarantined], bool] = field(default=lambda *_: True, kw_only=True)
    """Whether a copy is to be looked at at all."""
    _records: dict[str, PlanRecord | None] = field(default_factory=dict, init=False)
    """The store's records of plans, by id."""
    _in_quarantine: int = field(default=0, init=False)
    _old: int = field(default=0, init=False)
    """How many copies are old enough."""

    def rehearse(self, found: Callable[[Sequence[StoredObject]], object] = lambda _copies: None) -> PurgeOutcome:
        """Finds what would be deleted, and hands it to `found`; changes nothing. Raises TieredctlError `clock-skew` as
        the purge would."""
        demand_common_time(self.store, self.clock_ms)
        result = PurgeOutcome()
        with self._old_copies(self.clock_ms(), result) as copies:
            for batch in self._batches(copies, result):
                doomed = self._demand_unowned(batch, result)
                found(doomed)
                result.found += len(doomed)
                result.found_bytes += sum(copy.size for copy in doomed)
        return result

    def _old_copies(self, now_ms: int, result: PurgeOutcome) -> SpooledListing:
        """This cluster's copies that are old enough. Spooled, since a listing is not reliable while objects are deleted
        from it."""
        result.newest_ms = min(now_ms - self.older_than_ms, self.not_after_ms)
        return SpooledListing(self._chosen(result.newest_ms, result))

    def _chosen(self, newest_ms: int, result: PurgeOutcome) -> Iterator[StoredObject]:
        ours, strangers = False, set[str]()
        self._in_quarantine = 0
        for copy, original in copies_in_quarantine(self.store):
            self._in_quarantine += 1
            if not self.is_meant(copy, original):
                continue
            cluster_id = self._cluster_of(original)
            if cluster_id == self.cluster_id:
                ours = True
                if copy.last_modified_ms <= newest_ms:
                    self._demand_same_layout(original.plan_id)
                    yield copy
                else:
                    result.keep_young(copy)
            elif cluster_id is not None:
                strangers.add(cluster_id)
            elif copy.last_modified_ms <= newest_ms:
                result.unproven += 1
        if strangers and not ours:
            clusters = ", ".join(sorted(strangers))
            message = f"The quarantine of {self.store.url} belongs to cluster {clusters}, not {self.cluster_id}."
            raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Give the metadata of that cluster.")

    def _cluster_of(self, original: Quarantined) -> str | None:
        if original.cluster_id is not None:
            return original.cluster_id
        record = self._record_of(original.plan_id)
        return (record and record.cluster_id) or None

    def _demand_same_layout(self, plan_id: str) -> None:
        """Raises TieredctlError if the store has a plan on record for another cluster or layout: what it removed would
        look orphaned to this one."""
        record = self._record_of(plan_id)
        if record is None:
            return
        if record.cluster_id not in (self.cluster_id, ""):
            message = f"Plan {plan_id} removed objects of cluster {record.cluster_id}, not {self.cluster_id}."
            raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Give the metadata of that cluster.")
        if record.layout not in (self.owners.layout_name, ""):
            message = f"Plan {plan_id} removed objects of layout {record.layout}, not {self.owners.layout_name}."
            raise TieredctlError(ErrorCode.USAGE, message, hint=f"Give --layout {record.layout}.")

    def _record_of(self, plan_id: str) -> PlanRecord | None:
        """The record of a plan; None also for one that cannot be read: it proves nothing."""
        if plan_id not in self._records:
            try:
                self._records[plan_id] = plan_record(self.store, plan_id)
            except TieredctlError as error:
                if error.code is not ErrorCode.LEDGER_DAMAGED:
                    raise
                self._records[plan_id] = None
        return self._records[plan_id]

    def _batches(self, copies: SpooledBatches, result: PurgeOutcome) -> Iterator[list[_Pair]]:
        """Copies with their originals, once nothing speaks against a purge."""
        self._old = sum(len(batch) for batch in copies.batches())
        if not self._old:
            return
        self.owners.refresh()
        self._demand_share(self._old)
        self._demand_overlap(copies)
        pairs = _pairs(copies)
        while batch := list(islice(pairs, MOST_DELETED_AT_ONCE)):
            result.planned += len(batch)
            yield batch

    def _demand_share(self, old: int) -> None:
        """Counts no more of the store's objects than needed."""
        if self.max_percent >= 100:
            return
        enough = int(old * 100 / self.max_percent) + 1 if self.max_percent else sys.maxsize
        fit, objects = self.owners.fit(self.store.url), list_unreserved(self.store)
        while fit.listed < enough and (batch := list(islice(objects, _AT_ONCE))):
            fit.look_at(batch)
        all_objects = self._in_quarantine + fit.listed
        share = f"{old} of the {all_objects} objects in {self.store.url}, its quarantine included,"
        demand_percent(old, all_objects, self.max_percent, f"{share} would be deleted for good")

    def _demand_overlap(self, copies: SpooledBatches) -> None:
        """Metadata that knows nothing that is, or was, in a store belongs to another store."""
        for objects in (_originals(copies), list_unreserved(self.store)):
            while batch := list(islice(objects, MOST_DELETED_AT_ONCE)):
                if self.owners.knows(batch):
                    return
        message = f"The metadata knows no topic with objects in {self.store.url} or its quarantine."
        raise TieredctlError(ErrorCode.NO_OVERLAP, message)

    def _demand_unowned(self, batch: Sequence[_Pair], result: PurgeOutcome) -> list[StoredObject]:
        """The copies whose originals are orphaned by the metadata of now, and those whose bytes are back at the
        original key, whoever owns them."""
        self.owners.refresh()
        statuses = self.owners.statuses(_as_it_was(copy, original) for copy, original in batch)
        doomed = []
        for (copy, original), status in zip(batch, statuses, strict=True):
            may_go = self._may_go(original, status)
            current = None if may_go else head_again(self.store, original.key)
            is_one_too_many = current is not None and same_bytes(self.store, current, copy) is not None
            is_read = status is ObjectStatus.OWNED and self.owners.is_read(original.key)
            if may_go or is_one_too_many:
                doomed.append(copy)
            elif current is not None and is_read:
                result.replaced += 1
            else:
                result.skipped += 1
                if is_read:
                    result.owned.append(original.key)
                    result.findings.append(not_in_its_place(original.key, self.store.url))
        return doomed

    def _may_go(self, original: Quarantined, status: ObjectStatus) -> bool:
        return self.owners.may_be_purged(original.key, status, self._record_of(original.plan_id))


@dataclass(slots=True)
class Purge(PurgeCheck):
    """One run over the quarantine of a store."""

    store: WritableObjectStore
    without_lease: bool = field(default=False, kw_only=True)
    delete_versions: bool = field(default=False, kw_only=True)
    """Whether to delete the copies' kept versions too."""
    key: bytes | None = field(default=None, kw_only=True)
    """The key that sealed the notes about the copies, which are deleted with the copies."""
    purpose: str = field(default="orphans purge", kw_only=True)
    """The command, as whoever waits for the lease is told."""
    _has_deleted: bool = field(default=False, init=False)
    """Whether a copy was, or may have been, deleted."""

    def run(self) -> PurgeOutcome:
        """Deletes the copies that are old enough and still orphaned, then looks whether they are, whatever stopped it:
        that is in the outcome. Raises KeyboardInterrupt after an interruption, or TieredctlError `interrupted` with
        what that look found."""
        result = PurgeOutcome()
        with lease_held(self.store, self.purpose, self.clock_ms, unguarded=self.without_lease) as lease:
            try:
                with self._old_copies(lease.clock(), result) as copies:
                    try:
                        self._purge_each(copies, lease, result)
                        self._look_again(copies, result)
                    except KeyboardInterrupt:
                        self._name_lost(copies, result)
                        raise
            except TieredctlError as error:
                if error.code is ErrorCode.INTERRUPTED:
                    raise
                result.stopped = stopped_twice(result.stopped, error)
            if result.stopped is None:
                forget_original_times(self.store, self.key, TIMES_OF_COPIES)
                forget_noted_bytes(self.store, self.key)
        return result

    def _purge_each(self, copies: SpooledBatches, lease: Hold, result: PurgeOutcome) -> None:
        try:
            for batch in self._batches(copies, result):
                self._purge(batch, lease, result)
        except TieredctlError as error:
            result.stopped = error

    def _purge(self, batch: Sequence[_Pair], lease: Hold, result: PurgeOutcome) -> None:
        doomed = self._demand_unowned(batch, result)
        note("copies judged", result.planned)
        with critical_section():
            self._delete(doomed, lease, result)
            if result.planned == self._old:
                mark_complete()

    def _delete(self, doomed: Sequence[StoredObject], lease: Hold, result: PurgeOutcome) -> None:
        lease.renew()
        self._has_deleted = self._has_deleted or bool(doomed)
        gone = []
        for deletion in delete_surely(self.store, doomed):
            if deletion.outcome is DeletionOutcome.GONE:
                gone.append(deletion.stored.key)
                result.done += 1
                result.bytes += deletion.stored.size
            else:
                result.failed += 1
        if self.delete_versions:
            result.versions = result.versions or DeletedVersions()
            result.versions.add(delete_versions(self.store, gone))

    def _name_lost(self, copies: SpooledBatches, result: PurgeOutcome) -> None:
        """After an interruption. Raises TieredctlError `interrupted` where anything is lost."""
        result.lost.clear()  # the last look, too, may have been interrupted
        with cleanup_section():
            self._look_again(copies, result)
        if result.lost:
            message = f"Interrupted. Deleted for good, and brokers may read it now: {', '.join(result.lost)}."
            raise TieredctlError(
                ErrorCode.INTERRUPTED, message, hint="`tieredctl verify` says what they are of."
            ) from None

    def _look_again(self, copies: SpooledBatches, result: PurgeOutcome) -> None:
        """Names what brokers may read, and neither quarantine nor store has: its broker finished a copy after it was
        judged, and before its copy here was deleted."""
        if not self._has_deleted:
            return
        self.owners.refresh()
        pairs = _pairs(copies)
        while batch := list(islice(pairs, MOST_DELETED_AT_ONCE)):
            nowhere = [pair for pair in self._read_by_brokers(batch) if not self._is_somewhere(*pair)]
            if nowhere:
                self.owners.refresh()  # a broker may have deleted what was back in its place
            for _, original in self._read_by_brokers(nowhere):
                result.lost.append(original.key)
                result.findings.append(not_in_its_place(original.key, self.store.url, is_purged=True))

    def _read_by_brokers(self, batch: Sequence[_Pair]) -> list[_Pair]:
        """Those that have owners by what was read last; also where it is not known whether readers ask for them."""
        owned = having_owners(self.owners, batch, lambda pair: _as_it_was(*pair))
        return [pair for pair in owned if self.owners.is_read(pair[1].key) is not False]

    def _is_somewhere(self, copy: StoredObject, original: Quarantined) -> bool:
        return self.store.head(copy.key) is not None or head_again(self.store, original.key) is not None


def _pairs(copies: SpooledBatches) -> Iterator[_Pair]:
    for batch in copies.batches():
        for row in batch.to_pylist():
            key = key_text(row["key"])
            copy = StoredObject(key, row["size"], row["lastModifiedMs"], row["version"].decode())
            original = quarantined(key)
            if original is not None:
                yield copy, original


def _originals(copies: SpooledBatches) -> Iterator[StoredObject]:
    return (_as_it_was(copy, original) for copy, original in _pairs(copies))


def _as_it_was(copy: StoredObject, original: Quarantined) -> StoredObject:
    """The original of a copy; as old as can be where the release that made the copy did not record its time."""
    return StoredObject(original.key, copy.size, original.last_modified_ms or 0, "")

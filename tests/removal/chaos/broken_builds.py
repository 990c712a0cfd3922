"""Builds of tieredctl in which one safeguard is missing. The chaos has to find each out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tieredctl_proposals.ops.wal.owners import WalOwners
from tieredctl_proposals.wal.replayed import ReplayedWal

from tieredctl.model.removal import Receipt, ReceiptStep
from tieredctl.ops.guards import store_clock
from tieredctl.ops.guards.comparison import Sameness
from tieredctl.ops.guards.lease import Hold, Lease
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal import apply, preparation, receipts, restore, use
from tieredctl.ops.orphan_removal.apply import Removal, RemovalOutcome
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.owners import Found
from tieredctl.ops.orphan_removal.preparation import Evidence, Preparation, Prepared
from tieredctl.ops.orphan_removal.purge import Purge
from tieredctl.ops.orphan_removal.restore import Restore, RestoreOutcome
from tieredctl.ops.orphan_removal.use import PlanCheck
from tieredctl.ops.orphans.segment_states import CopiedOffsets, CopiedStretches
from tieredctl.ports.object_store import StoredObject

Break = Callable[[pytest.MonkeyPatch], None]
KINDS: tuple[type[FreshMetadata] | type[WalOwners], ...] = (FreshMetadata, WalOwners)


def metadata_is_read_once(patch: pytest.MonkeyPatch) -> None:
    """Nothing new is read before a deletion, nor at the end."""
    for owners in KINDS:
        patch.setattr(owners, "refresh", _once(owners.refresh))


def verdicts_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """The metadata is read, but the objects are not held against it."""
    for owners in KINDS:
        patch.setattr(owners, "demand_removable", lambda *_: None)


def nothing_is_put_back(patch: pytest.MonkeyPatch) -> None:
    """What got an owner after it was removed stays removed."""
    patch.setattr(Removal, "_put_owned_back", lambda *_: None)


def a_replica_that_is_behind_is_believed(patch: pytest.MonkeyPatch) -> None:
    """Whoever answers with less than was read before."""

    def note_ends(self: FollowedMetadata, source: Any) -> bool:
        self._end_offsets = {number: source.offset_range(number).end for number in source.metadata_partitions()}
        return True

    patch.setattr(FollowedMetadata, "_note_ends", note_ends)


def receipts_are_written_afterwards_only(patch: pytest.MonkeyPatch) -> None:
    """Nobody knows what was about to be deleted."""
    record = Removal._record

    def record_what_ended(self: Removal, receipts: Sequence[Receipt]) -> None:
        begun = (ReceiptStep.COPIED, ReceiptStep.DELETING)
        record(self, [receipt for receipt in receipts if receipt.step not in begun])

    patch.setattr(Removal, "_record", record_what_ended)


def objects_are_moved_at_once(patch: pytest.MonkeyPatch) -> None:
    """Deleted as soon as they are copied, before there is a receipt, and before the metadata is asked again."""
    prepare = Preparation.prepare

    def move(self: Preparation, looked_at: Prepared, before: Receipt | None) -> Prepared:
        prepared = prepare(self, looked_at, before)
        if prepared.found is not None:
            self.store.delete([prepared.found])
        return prepared

    patch.setattr(Preparation, "prepare", move)


def objects_are_deleted_before_they_are_copied(patch: pytest.MonkeyPatch) -> None:
    """Their bytes are gone when the copy is asked for."""

    def prepare(self: Preparation, looked_at: Prepared, _before: Receipt | None) -> Prepared:
        if looked_at.found is not None:
            self.store.delete([looked_at.found])
        return looked_at

    patch.setattr(Preparation, "prepare", prepare)


def the_version_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """Whatever is under the key is taken for what was planned, as old as that was."""
    patch.setattr(preparation, "_is_as_planned", lambda *_: True)
    for owners in KINDS:
        patch.setattr(owners, "demand_removable", _as_planned(owners.demand_removable))


def _once(refresh: Callable[[Any], None]) -> Callable[[Any], None]:
    done = list[Any]()

    def refresh_once(self: Any) -> None:
        if not any(self is one for one in done):
            refresh(self)
            done.append(self)

    return refresh_once


def _as_planned(demand_removable: Callable[[Any, Sequence[Found], Limits], None]) -> Callable[..., None]:
    def demand_as_planned(self: Any, batch: Sequence[Found], limits: Limits) -> None:
        aged = [(planned, stored._replace(last_modified_ms=planned.last_modified_ms)) for planned, stored in batch]
        demand_removable(self, aged, limits)

    return demand_as_planned


def the_lease_is_never_renewed(patch: pytest.MonkeyPatch) -> None:
    """Who lost it goes on."""
    patch.setattr(Lease, "renew", lambda _: None)


def a_failure_hides_the_copy(patch: pytest.MonkeyPatch) -> None:
    """The receipt of a failure makes forget that another run copied the object."""

    def update(last: dict[str, Receipt], found: Iterable[Receipt]) -> None:
        last.update((receipt.upload_id or receipt.key, receipt) for receipt in found)

    for module in (receipts, apply):
        patch.setattr(module, "remember", update)


def receipts_alone_tell(patch: pytest.MonkeyPatch) -> None:
    """What is in quarantine is not looked at: then receipts have to have everything."""
    patch.setattr(restore, "copies_of", lambda *_: {})
    patch.setattr(restore, "keys_removed_by", lambda *_: iter(()))


def the_plan_is_not_remembered(patch: pytest.MonkeyPatch) -> None:
    """It can be used twice."""
    patch.setattr(use, "plan_use", lambda *_: None)


def purge_does_not_ask(patch: pytest.MonkeyPatch) -> None:
    """The quarantine is emptied of what somebody owns by now."""

    def everything(_: Purge, batch: Sequence[tuple[StoredObject, str]], _result: object) -> list[StoredObject]:
        return [copy for copy, _key in batch]

    patch.setattr(Purge, "_demand_unowned", everything)


def a_stop_ends_the_run(patch: pytest.MonkeyPatch) -> None:
    """What was removed before something stopped the run is not looked at again."""
    put_owned_back = Removal._put_owned_back

    def unless_stopped(self: Removal, result: RemovalOutcome) -> None:
        if result.stopped is None:
            put_owned_back(self, result)

    patch.setattr(Removal, "_put_owned_back", unless_stopped)


def only_what_is_confirmed_is_put_back(patch: pytest.MonkeyPatch) -> None:
    """What was deleted, but the answer was lost, stays deleted whoever owns it."""
    begun = Removal._begun

    def removed(self: Removal) -> Iterator[list[Receipt]]:
        for batch in begun(self):
            yield [receipt for receipt in batch if receipt.step is ReceiptStep.REMOVED]

    patch.setattr(Removal, "_begun", removed)


def restore_empties_the_quarantine(patch: pytest.MonkeyPatch) -> None:
    """A run of the plan that wakes up then deletes what no copy is left of."""
    restore = Restore._restore

    def restore_and_delete(
        self: Restore, batch: Sequence[Receipt], lease: Hold, result: RestoreOutcome, evidence: Evidence
    ) -> None:
        restore(self, batch, lease, result, evidence)
        self.store.delete([StoredObject(*receipt.copy) for receipt in batch if receipt.copy is not None])

    patch.setattr(Restore, "_restore", restore_and_delete)


def copies_are_believed(patch: pytest.MonkeyPatch) -> None:
    """What the store says is a copy is one."""
    patch.setattr(preparation, "demand_same", lambda *_: Sameness("size", {}))


def whatever_is_in_quarantine_is_put_back(patch: pytest.MonkeyPatch) -> None:
    """A copy of the right size counts as what was removed."""
    patch.setattr(Evidence, "_demand", lambda *_, **__: "size")


def deletions_are_believed(patch: pytest.MonkeyPatch) -> None:
    """What the store says is deleted is gone."""
    patch.setattr(apply, "delete_surely", lambda store, objects: store.delete(objects))


def any_clock_is_believed(patch: pytest.MonkeyPatch) -> None:
    """However far host and store are apart."""
    patch.setattr(store_clock, "MOST_SKEW_MS", 1 << 60)


def lost_events_are_not_thought_of(patch: pytest.MonkeyPatch) -> None:
    """What metadata never named is taken for debris, wherever its records are."""
    patch.setattr(CopiedOffsets, "hold", lambda _, partitions, *__: np.ones(len(partitions), np.bool_))


def lost_ends_are_not_thought_of(patch: pytest.MonkeyPatch) -> None:
    """A copy that by its events never ended is given up once another began, wherever its records are."""
    patch.setattr(CopiedStretches, "hold", lambda _, owners, *__: np.ones(len(owners), np.bool_))


def missing_promises_are_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    """Whatever the metadata promises, and the store lacks."""
    patch.setattr(PlanCheck, "lost_promises", lambda _: None)


def readers_are_not_told_before(patch: pytest.MonkeyPatch) -> None:
    """That an object goes."""
    patch.setattr(WalOwners, "announce", lambda *_: None)


def readers_are_not_told_in_the_end(patch: pytest.MonkeyPatch) -> None:
    """That an object is gone."""
    patch.setattr(WalOwners, "conclude", lambda *_: None)


def a_reason_is_not_asked_for_again(patch: pytest.MonkeyPatch) -> None:
    """What a cleaner announced as deleted, or deleted, nobody is taken to need."""
    patch.setattr(ReplayedWal, "are_cleaned", property(lambda self: np.zeros(len(self.segments), np.bool_)))


OF_EVERY_KIND: tuple[Break, ...] = (
    metadata_is_read_once,
    verdicts_are_not_looked_at,
    nothing_is_put_back,
    a_replica_that_is_behind_is_believed,
    objects_are_moved_at_once,
    objects_are_deleted_before_they_are_copied,
    the_version_is_ignored,
    the_plan_is_not_remembered,
    copies_are_believed,
    whatever_is_in_quarantine_is_put_back,
    deletions_are_believed,
    any_clock_is_believed,
)
BROKEN_BUILDS: tuple[Break, ...] = (
    *OF_EVERY_KIND,
    the_lease_is_never_renewed,
    purge_does_not_ask,
    a_stop_ends_the_run,
    restore_empties_the_quarantine,
    lost_events_are_not_thought_of,
    lost_ends_are_not_thought_of,
    missing_promises_are_not_looked_for,
)
BROKEN_BUILDS_OF_WAL: tuple[Break, ...] = (
    *OF_EVERY_KIND,
    readers_are_not_told_before,
    readers_are_not_told_in_the_end,
    a_reason_is_not_asked_for_again,
)
"""Late owners are in `test_late_owners.py`. That a lease is renewed, and that copies stay, both kinds share: here
another run's events are noticed before."""

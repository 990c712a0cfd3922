"""`orphans apply`, `restore` and `purge`: each opens what it needs, reads the current metadata, and does its work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from tieredctl.config.plan_key import usable_key
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.registry import layouts_installed
from tieredctl.model.removal import PLAN_ID, ReceiptsHeader
from tieredctl.ops.guards.kept_versions import WhatStays, retention_of
from tieredctl.ops.guards.lease import FoundLease, break_lease, find_lease
from tieredctl.ops.guards.original_times import read_original_times
from tieredctl.ops.guards.own_objects import TIMES_OF_RESTORED
from tieredctl.ops.guards.quarantine_keys import Quarantined, copies_in_quarantine
from tieredctl.ops.guards.store_clock import store_clock
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.apply import RemovalOutcome
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.owners import Owners
from tieredctl.ops.orphan_removal.plan_file import PlanFile
from tieredctl.ops.orphan_removal.purge import Purge, PurgeCheck, PurgeOutcome
from tieredctl.ops.orphan_removal.receipts import ReceiptFile, Receipts, StoredReceipts
from tieredctl.ops.orphan_removal.restore import Restore, RestoreOutcome, receipts_from_quarantine
from tieredctl.ops.orphan_removal.use import PlanCheck, PlanUser
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore
from tieredctl.storage.counting import CountingReader, CountingStore
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace


class Applied(NamedTuple):
    """The result of a plan."""

    outcome: RemovalOutcome
    stays: WhatStays
    """What the store keeps of what was deleted."""
    requests: Mapping[str, int]
    """How many requests the store got, by method."""
    receipts: Receipts | None = None
    """None if nothing was to be done."""


class Purged(NamedTuple):
    """What happened to the copies in a quarantine."""

    outcome: PurgeOutcome
    stays: WhatStays
    url: str
    """The store's."""


@dataclass(frozen=True, slots=True)
class ReceiptPlace:
    """Where to keep the receipts of a plan."""

    file: Path | None
    """None for the plan's own store."""

    def begin(self, store: WritableObjectStore, header: ReceiptsHeader, must_exist: bool) -> Receipts:
        """The receipts, created if there are none. Raises TieredctlError `receipts-missing` if an earlier run of the
        plan left some that are not here."""
        if self.file is None:
            return StoredReceipts.begun(store, header)
        if must_exist and not self.file.exists():
            message = f"An earlier run of this plan left receipts, but not in {self.file}."
            raise TieredctlError(ErrorCode.RECEIPTS_MISSING, message)
        return ReceiptFile.begun(self.file, header)


class OwnersPlace(Protocol):
    """Where to ask whose the objects of a plan are."""

    def opened(self, store: ObjectStore, application: PlanApplication) -> AbstractContextManager[Owners]:
        """Opens an application of a plan to a store. Raises TieredctlError if it is not such a plan."""
        ...


@dataclass(frozen=True, slots=True)
class PlanApplication:
    """A plan that was read, and where to apply it."""

    plan: PlanFile
    limits: Limits
    store: StorePlace
    """The store, with the plan's own layout."""
    owners: OwnersPlace
    clock_ms: Callable[[], int]
    key: bytes | None
    """Seals notes of objects' original times, and checks their seals."""

    def rehearse(self) -> Applied:
        """Checks whether it could be applied now; writes nothing. Raises TieredctlError if it may not be."""
        store = CountingReader(self.store.open_store())
        with self.owners.opened(store, self) as owners:
            outcome = PlanCheck(self.plan, store, owners, self.clock_ms, self.limits, self.key).rehearse()
        requests = store.requests
        return Applied(outcome, _stays(store, outcome), requests)

    def apply(
        self,
        receipts: ReceiptPlace,
        *,
        pace: Callable[[int], None],
        tell: Callable[[RemovalOutcome], None],
        without_lease: bool,
        with_versions: bool,
    ) -> Applied:
        """Removes what is left to remove. Raises TieredctlError if nothing may be removed."""
        store, begun = CountingStore(self.store.open_writable_store()), list[Receipts]()

        def begin(header: ReceiptsHeader, must_exist: bool) -> Receipts:
            begun.append(receipts.begin(store, header, must_exist))
            return begun[0]

        with self.owners.opened(store, self) as owners:
            user = PlanUser(
                *(self.plan, store, owners, begin, self.clock_ms, self.limits),
                pace=pace,
                tell=tell,
                without_lease=without_lease,
                delete_versions=with_versions,
                key=self.key,
            )
            outcome = user.run()
        requests = store.requests
        return Applied(outcome, _stays(store, outcome), requests, *begun)


@dataclass(frozen=True, slots=True)
class TieredOwners:
    """The metadata of tiered topics, and which topics there are."""

    metadata: MetadataPlace
    topics: TopicsPlace

    @contextmanager
    def opened(self, store: ObjectStore, application: PlanApplication) -> Iterator[FreshMetadata]:
        header, limits, clock_ms = application.plan.header, application.limits, application.clock_ms
        if header.control_plane is not None:
            message = f"{application.plan.path} is a plan for objects of diskless topics."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Use `tieredctl diskless orphans apply`.")
        layout = application.store.layout_in(store)
        self.metadata.demand_topic_based()
        followed = FollowedMetadata(self.metadata.open_source, header.cluster_id, header.metadata_end_offsets)
        not_since_ms = clock_ms() - limits.min_age_ms
        with self.topics.open(clock_ms()) as topics, closing(followed):
            yield FreshMetadata(
                followed,
                layout=layout,
                min_age_ms=limits.min_age_ms,
                topic_sources=topics,
                clock_ms=clock_ms,
                read_times=partial(read_original_times, store, application.key, TIMES_OF_RESTORED, not_since_ms),
                installed_layouts=layouts_installed(),
                key=application.key,
            )


@dataclass(frozen=True, slots=True)
class QuarantinePurge:
    """A store whose quarantine is to be purged, and what decides which copies may be deleted."""

    store: StorePlace
    cluster_id: str
    older_than_ms: int
    max_percent: float
    clock_ms: Callable[[], int]
    _opened: Callable[[ObjectStore], AbstractContextManager[Owners]]

    def rehearse(self) -> Purged:
        """Finds what would be deleted; changes nothing."""
        store = self.store.open_store()
        with self._opened(store) as owners:
            check = PurgeCheck(
                *(store, owners, self.cluster_id, self.older_than_ms, self.clock_ms), max_percent=self.max_percent
            )
            outcome = check.rehearse()
        return Purged(outcome, _stays(store, outcome), store.url)

    def apply(self, shown: PurgeOutcome | None, *, without_lease: bool, with_versions: bool) -> Purged:
        """Deletes the copies that are old enough and still orphaned; where some were shown, no younger ones. Raises
        TieredctlError if nothing may be."""
        store = self.store.open_writable_store()
        with self._opened(store) as owners:
            purge = Purge(
                *(store, owners, self.cluster_id, self.older_than_ms, self.clock_ms),
                max_percent=self.max_percent,
                without_lease=without_lease,
                delete_versions=with_versions,
                not_after_ms=sys.maxsize if shown is None else shown.newest_ms,
                key=usable_key(),
            )
            outcome = purge.run()
        return Purged(outcome, _stays(store, outcome), store.url)


def quarantine_purge(
    store: StorePlace,
    metadata: MetadataPlace,
    topics: TopicsPlace,
    *,
    cluster_id: str | None,
    older_than_ms: int,
    max_percent: float,
    clock_ms: Callable[[], int],
) -> QuarantinePurge:
    """The purge of a store by the metadata of tiered topics. Raises TieredctlError `usage` if neither the metadata nor
    `cluster_id` names the cluster. Does not open the store yet."""
    metadata.demand_topic_based()
    with closing(FollowedMetadata(metadata.open_source)) as first:
        own_cluster_id = demand_known(first.source().cluster_id or cluster_id)

    @contextmanager
    def opened(there: ObjectStore) -> Iterator[FreshMetadata]:
        # Each time from its beginning: whoever is given only what was added since knows too few owners.
        layout = store.layout_in(there)
        followed = FollowedMetadata(metadata.open_source, own_cluster_id)
        with topics.open(clock_ms()) as sources, closing(followed):
            yield FreshMetadata(followed, layout=layout, min_age_ms=0, topic_sources=sources, clock_ms=clock_ms)

    return QuarantinePurge(store, own_cluster_id, older_than_ms, max_percent, clock_ms, opened)


def demand_known(cluster_id: str | None) -> str:
    """The cluster whose copies are purged. Raises TieredctlError `usage` where neither metadata nor user named it."""
    if cluster_id is None:
        message = "The metadata does not say which cluster it belongs to."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give --cluster-id.")
    return cluster_id


@dataclass(frozen=True, slots=True)
class Restoration:
    """A removal to undo: its receipts, and its store."""

    receipts: Receipts
    are_lost: bool
    """Whether the receipts that its plan left no longer exist."""
    _store: WritableObjectStore

    def apply(self, clock_ms: Callable[[], int], *, without_lease: bool, accept_unverified: bool) -> RestoreOutcome:
        """Puts back what is not back yet. Raises TieredctlError if nothing may be changed."""
        key = usable_key()
        return Restore(self._store, self.receipts, clock_ms, without_lease, key, accept_unverified).run()

    def rehearse(self, clock_ms: Callable[[], int], *, accept_unverified: bool) -> RestoreOutcome:
        """What would be put back; changes nothing."""
        return Restore(
            self._store, self.receipts, clock_ms, key=usable_key(), accept_unverified=accept_unverified
        ).rehearse()


def restoration_by_file(file: Path, options: Mapping[str, str]) -> Restoration:
    """Opens a restoration by the receipts in a file, which name their store. Raises TieredctlError if either cannot be
    opened."""
    receipts = ReceiptFile.opened(file)
    return Restoration(receipts, False, StorePlace(receipts.header.store, options).open_writable_store())


def restoration_by_plan(plan_id: str, url: str, options: Mapping[str, str], *, to_apply: bool) -> Restoration:
    """Opens a restoration by the receipts that the store has of a plan; by its quarantine if they are lost, which then
    keeps new ones if they are `to_apply`. Raises TieredctlError for what is not a plan's id, and if the store has
    nothing of the plan."""
    if PLAN_ID.fullmatch(plan_id) is None and not Path(plan_id).is_file():
        hint = "For a file of receipts, omit --store."
        raise TieredctlError(ErrorCode.USAGE, f"{plan_id!r} is not a plan's id.", hint=hint)
    if Path(plan_id).is_file():
        message = f"The receipts in {plan_id} name their store themselves."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Omit --store.")
    store = StorePlace(url, options).open_writable_store()
    try:
        return Restoration(StoredReceipts.opened(store, plan_id), False, store)
    except TieredctlError as error:
        if error.code not in (ErrorCode.PATH_MISSING, ErrorCode.RECEIPTS_DAMAGED):
            raise
        return Restoration(receipts_from_quarantine(store, plan_id, are_kept=to_apply), True, store)


def _stays(store: ObjectStore, outcome: RemovalOutcome | PurgeOutcome) -> WhatStays:
    """What the store keeps of deleted objects, such as versions and locked objects."""
    return WhatStays(retention_of(store), outcome.done, outcome.bytes, outcome.versions)


class OpenedQuarantine(NamedTuple):
    """The copies in a store, each with what its key says, by ascending key. Streams."""

    url: str
    copies: Iterator[tuple[StoredObject, Quarantined]]


def opened_quarantine(place: StorePlace) -> OpenedQuarantine:
    """Raises TieredctlError if the store cannot be opened; iterating raises it if the store does not answer."""
    store = place.open_store()
    return OpenedQuarantine(store.url, copies_in_quarantine(store))


@dataclass(frozen=True, slots=True)
class StoreLease:
    """The lease of a store, as it was found."""

    found: FoundLease | None
    """None if no run ever took it."""
    is_held: bool
    _store: WritableObjectStore

    @property
    def url(self) -> str:
        """The store's."""
        return self._store.url

    def free(self) -> None:
        """Breaks the lease. Raises TieredctlError `locked` if its holder renewed it since it was found."""
        if self.found is None or break_lease(self._store, self.found):
            return
        message = f"{self.found.holder} renewed the lease of {self.url} just now: that run is active."
        raise TieredctlError(ErrorCode.LOCKED, message, hint="Stop it, or wait until it ends.")


def store_lease(place: StorePlace, clock_ms: Callable[[], int]) -> StoreLease:
    """The lease of a store, which is opened for writing. Raises TieredctlError if that fails."""
    store = place.open_writable_store()
    lease = find_lease(store)
    return StoreLease(lease, lease is not None and _is_held(store, lease, clock_ms), store)


def _is_held(store: WritableObjectStore, lease: FoundLease, clock_ms: Callable[[], int]) -> bool:
    """Whether the lease is held, by the store's clock; if the time is uncertain, until the lease is released."""
    if lease.is_released:
        return False
    try:
        return lease.is_held(store_clock(store, clock_ms)())
    except TieredctlError as error:
        if error.code is not ErrorCode.CLOCK_SKEW:
            raise
        return True

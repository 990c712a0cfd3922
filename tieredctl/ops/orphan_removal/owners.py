"""What decides, again and again, whose the objects of a store are: all in which removal differs between systems.

Plans, the quarantine, receipts, leases and limits are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.removal import PlannedObject, PlanRecord
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore

_Removed = TypeVar("_Removed")
Found = tuple[PlannedObject, StoredObject]
"""A planned object, and what the store has under its key now."""


class Fit(Protocol):
    """Whether a store and what decides about its objects belong together, by the objects seen so far."""

    @property
    def listed(self) -> int:
        """How many of the store's objects were looked at."""
        ...

    @property
    def is_sure(self) -> bool:
        """Whether enough was seen."""
        ...

    def look_at_planned(self, objects: Iterable[StoredObject]) -> int:
        """Looks at objects of a plan, which prove nothing: only what speaks against removing is noticed. Returns how
        many there are."""
        ...

    def look_at(self, objects: Sequence[StoredObject]) -> None:
        """Some of the store's objects."""
        ...

    def demand(self) -> None:
        """Raises TieredctlError if something speaks against removing anything from this store."""
        ...


class Owners(Protocol):
    """The owners of objects, as of the last `refresh` or later. Every method raises TieredctlError where that cannot be
    known: then nothing is removed."""

    @property
    def layout_name(self) -> str:
        """How keys are made, by the name that plans have for it."""
        ...

    def refresh(self) -> None:
        """Reads what is new, up to now."""
        ...

    def statuses(self, objects: Iterable[StoredObject]) -> Sequence[ObjectStatus]:
        """The status of each object."""
        ...

    def knows(self, objects: Sequence[StoredObject]) -> bool:
        """Whether one of them surely belongs to this system, now or once."""
        ...

    def missing(self, store: ObjectStore) -> Sequence[str]:
        """The keys of the objects that it promises, and that the store lacks. Lists the whole store; what is not listed
        is asked for by name, and whether it is still promised is asked again after that."""
        ...

    def modified_ms(self, stored: StoredObject) -> int:
        """Since when the store has had the bytes of an object, as far as known."""
        ...

    def fit(self, subject: str) -> Fit:
        """A fit that has seen nothing yet; `subject` is the store's URL."""
        ...

    def demand_removable(self, batch: Sequence[Found], limits: Limits) -> None:
        """Raises TieredctlError if an object may not be removed: `world-changed` if its status is no longer the planned
        one, or if no plan may remove it.

        What the plan says is only compared, never trusted.
        """
        ...

    def demand_endable(self, uploads: Sequence[StoredObject], limits: Limits, /) -> None:
        """Raises TieredctlError `world-changed` if an incomplete upload, given as the object that it would become, may
        still be completed, or belongs to another cluster."""
        ...

    def announce(self, store: WritableObjectStore, doomed: Sequence[StoredObject], lease: Hold, /) -> None:
        """Tells readers, where they have to be told first, that objects go, by what was read last. Whoever writes
        renews the lease before."""
        ...

    def conclude(self, store: WritableObjectStore, gone: Iterable[str], lease: Hold, /) -> None:
        """Tells them in the end of the keys that are gone by this plan, and were not put back."""
        ...

    def is_read(self, key: str, /) -> bool | None:
        """Whether readers may ask for an object that has an owner; None if that is not known."""
        ...

    def may_be_purged(self, key: str, status: ObjectStatus, record: PlanRecord | None, /) -> bool:
        """Whether the copy of an object may be deleted, by its status and the store's record of its plan."""
        ...


def having_owners(
    owners: Owners, removed: Sequence[_Removed], original: Callable[[_Removed], StoredObject]
) -> list[_Removed]:
    """Those among removed objects that have an owner by what was read last. `original` gives each as it was. Raises
    TieredctlError as `statuses` does."""
    statuses = owners.statuses(map(original, removed))
    return [one for one, status in zip(removed, statuses, strict=True) if status is ObjectStatus.OWNED]

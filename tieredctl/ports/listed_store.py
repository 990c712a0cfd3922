"""A store whose objects were just listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.ports.read_only_store import ReadOnlyStore


@dataclass(frozen=True, slots=True)
class AsListed(ReadOnlyStore):
    """Another store that is not asked what a listing already said of some objects.

    A listing grows old: what looks wrong is decided by the store itself.
    """

    listed: Mapping[str, StoredObject] = field(default_factory=dict)
    """By key."""

    @classmethod
    def of(cls, store: ObjectStore, listed: Iterable[StoredObject]) -> AsListed:
        return cls(store, {stored.key: stored for stored in listed})

    def head(self, key: str) -> StoredObject | None:
        return self.listed.get(key) or self.store.head(key)

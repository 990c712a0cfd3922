"""What is in a store's quarantine."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.model.removal import QuarantinedCopy, ReceiptsHeader
from tieredctl.ops.guards.own_objects import QUARANTINE
from tieredctl.ops.guards.quarantine_keys import Quarantined, folders_of, quarantined
from tieredctl.ports.object_store import ObjectStore, StoredObject


def copies_in_quarantine(store: ObjectStore) -> Iterator[tuple[StoredObject, Quarantined]]:
    """All copies, each with what its key says, by ascending key. Streams."""
    return _copies_below(store, QUARANTINE)


def copies_by_plan(
    store: ObjectStore, cluster_id: str | None, plan_id: str
) -> Iterator[tuple[StoredObject, Quarantined]]:
    """The copies that a plan made; of any cluster if `cluster_id` is None. Streams."""
    for folder in folders_of(cluster_id, plan_id):
        for copy, original in _copies_below(store, folder):
            if original.plan_id == plan_id:
                yield copy, original


def copies_of(store: ObjectStore, plan: ReceiptsHeader) -> dict[str, list[QuarantinedCopy]]:
    """The copies that a plan made, by the keys of their originals. A copy whose size differs from its original's does
    not count."""
    found: dict[str, list[QuarantinedCopy]] = {}
    for copy, original in copies_by_plan(store, plan.cluster_id or None, plan.plan_id):
        if original.size in (None, copy.size):
            kept = QuarantinedCopy(copy.key, copy.size, copy.last_modified_ms, copy.version)
            found.setdefault(original.key, []).append(kept)
    return found


def _copies_below(store: ObjectStore, folder: str) -> Iterator[tuple[StoredObject, Quarantined]]:
    for copy in store.list(folder):
        if original := quarantined(copy.key):
            yield copy, original

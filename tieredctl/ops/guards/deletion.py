"""Deletes objects, and believes it only of those that are not there when it looks again."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.storage.protocol import Deletion, DeletionOutcome, StoredObject, WritableObjectStore


def delete_surely(store: WritableObjectStore, objects: Sequence[StoredObject]) -> list[Deletion]:
    """What `WritableObjectStore.delete` does and gives, but that GONE was seen, not only said.

    An object of another version that is there now was made after the deletion. What could not be looked at has failed:
    trying it again is safe.
    """
    return in_parallel(store, lambda deletion: _looked_at(store, deletion), store.delete(objects))


def _looked_at(store: WritableObjectStore, deletion: Deletion) -> Deletion:
    if deletion.outcome is not DeletionOutcome.GONE:
        return deletion
    stored = deletion.stored
    try:
        found = store.head(stored.key)
    except TieredctlError as error:
        return Deletion(stored, DeletionOutcome.FAILED, error)
    if found is None or found.version != stored.version:
        return deletion
    message = f"{store.url} said that {stored.key} is deleted, and it is still there."
    return Deletion(stored, DeletionOutcome.FAILED, TieredctlError(ErrorCode.REMOVAL_FAILED, message))

"""Deletes objects, and counts as deleted only those that are absent when it looks again."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ports.object_store import Deletion, DeletionOutcome, StoredObject, WritableObjectStore


def delete_surely(store: WritableObjectStore, objects: Sequence[StoredObject]) -> list[Deletion]:
    """Does and returns what `WritableObjectStore.delete` does, except that GONE was verified, not only reported.

    Another version that exists now was written after the deletion. An object that could not be looked at counts as
    failed: trying again is safe.
    """
    return in_parallel(store, lambda deletion: _checked(store, deletion), store.delete(objects))


def _checked(store: WritableObjectStore, deletion: Deletion) -> Deletion:
    if deletion.outcome is not DeletionOutcome.GONE:
        return deletion
    stored = deletion.stored
    try:
        current = store.head(stored.key)
    except TieredctlError as error:
        return Deletion(stored, DeletionOutcome.FAILED, error)
    if current is None or current.version != stored.version:
        return deletion
    message = f"{store.url} reported {stored.key} as deleted, but it still exists."
    return Deletion(stored, DeletionOutcome.FAILED, TieredctlError(ErrorCode.REMOVAL_FAILED, message))

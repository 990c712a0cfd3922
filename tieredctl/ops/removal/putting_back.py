"""Puts one object back from quarantine."""

from __future__ import annotations

from tieredctl.errors import TieredctlError
from tieredctl.model.removal import QuarantinedCopy, Receipt, ReceiptStep
from tieredctl.storage.protocol import StoredObject, WritableObjectStore

_COMPARED_BYTES = 8 << 20


def put_back(store: WritableObjectStore, removed: Receipt, now_ms: int) -> Receipt:
    """Copies an object back to where it was, with its content type and metadata, unless it is there.

    Its copy stays in quarantine. What cannot be put back is a receipt FAILED that says why.
    """
    try:
        found = store.head(removed.key)
        if found is None:
            found = _copied_back(store, removed)
        elif removed.copy is not None and not _is_as_removed(store, found, removed.copy):
            raise TieredctlError("removal-failed", f"Another object is under the key {removed.key}.")
    except TieredctlError as error:
        return failed(removed.key, now_ms, error, removed.copy)
    return Receipt(ReceiptStep.RESTORED, removed.key, now_ms, found.size, removed.copy)


def _copied_back(store: WritableObjectStore, removed: Receipt) -> StoredObject:
    if removed.copy is None:
        raise TieredctlError("removal-failed", f"{removed.key} was deleted without a copy: it cannot be put back.")
    # A run that was killed may have copied the same bytes once more, which gave the copy another version.
    copy = store.head(removed.copy.key)
    back = store.copy(copy, removed.key) if copy is not None and copy.size == removed.copy.size else None
    if back is None:
        raise TieredctlError("removal-failed", f"The copy {removed.copy.key} is gone or was altered.")
    return back


def _is_as_removed(store: WritableObjectStore, found: StoredObject, copy: QuarantinedCopy) -> bool:
    """Whether an object has the bytes of its copy; where that is gone, as far as its size tells."""
    if found.size != copy.size or store.head(copy.key) is None:
        return found.size == copy.size
    starts = range(0, copy.size, _COMPARED_BYTES)
    return all(
        store.read(found.key, n, n + _COMPARED_BYTES) == store.read(copy.key, n, n + _COMPARED_BYTES) for n in starts
    )


def failed(key: str, now_ms: int, error: TieredctlError, copy: QuarantinedCopy | None = None) -> Receipt:
    """The receipt of what did not succeed."""
    return Receipt(ReceiptStep.FAILED, key, now_ms, copy=copy, error=f"{error.kind.code}: {error.message}")

"""Puts one object back from quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.removal import OriginalTime, QuarantinedCopy, Receipt, ReceiptStep
from tieredctl.ops.guards.comparison import demand_same, same_by
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes, note_original_times
from tieredctl.ops.guards.own_objects import QUARANTINE, TIMES_OF_RESTORED
from tieredctl.ops.guards.quarantine_keys import quarantined
from tieredctl.storage.protocol import RESERVED_FOLDER, StoredObject, WritableObjectStore


class PutBack(NamedTuple):
    """What became of one object that was to be put back."""

    receipt: Receipt
    time: OriginalTime | None = None
    """Its original time, if it was put back just now and its copy's note tells."""


def put_back(
    store: WritableObjectStore, removed: Receipt, now_ms: int, times_of_copies: OriginalTimes = NO_ORIGINAL_TIMES
) -> PutBack:
    """Copies an object back to where it was, with its attributes, unless it is there.

    Its copy stays in quarantine. If it cannot be put back, a receipt FAILED says why.
    """
    time = None
    try:
        _demand_own_copy(removed)
        found, compared_by = store.head(removed.key), None
        if found is None:
            found, compared_by, original_ms = _copied_back(store, removed, now_ms, times_of_copies)
            if original_ms is not None:
                time = OriginalTime(found.key, found.size, found.last_modified_ms, found.version, original_ms)
        elif removed.copy is not None:
            compared_by = _same_as_removed(store, found, removed.copy)
    except TieredctlError as error:
        return PutBack(failed(removed.key, now_ms, error, removed.copy, removed.modified_ms))
    receipt = Receipt(
        *(ReceiptStep.RESTORED, removed.key, now_ms, found.size, removed.copy),
        compared_by=compared_by,
        modified_ms=removed.modified_ms,
    )
    return PutBack(receipt, time)


def note_times(store: WritableObjectStore, key: bytes | None, back: Sequence[PutBack]) -> None:
    """Notes, sealed with a key, the original times of what was put back."""
    note_original_times(store, key, TIMES_OF_RESTORED, [one.time for one in back if one.time is not None])


def _demand_own_copy(removed: Receipt) -> None:
    """Anybody may have written receipts: objects are copied only from quarantine, and only to where they came from."""
    if removed.key.startswith(RESERVED_FOLDER):
        raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"{removed.key} is tieredctl's own object: no plan removed it.")
    if removed.copy is None:
        return
    original = quarantined(removed.copy.key) if removed.copy.key.startswith(QUARANTINE) else None
    if original is None or original.key != removed.key:
        raise TieredctlError(
            ErrorCode.REMOVAL_FAILED, f"{removed.copy.key} is not a quarantined copy of {removed.key}."
        )


def _copied_back(
    store: WritableObjectStore, removed: Receipt, now_ms: int, times_of_copies: OriginalTimes
) -> tuple[StoredObject, str, int | None]:
    """The new object, how it was found to have the bytes of its copy, and since when the store has had them by the
    copy's note."""
    if removed.copy is None:
        raise TieredctlError(
            ErrorCode.REMOVAL_FAILED, f"{removed.key} was deleted without a copy: it cannot be put back."
        )
    # A run that was killed may have copied the same bytes again, which gave the copy another version.
    copy = store.head(removed.copy.key)
    modified_ms = _modified_ms(removed, removed.copy.key)
    modified_ms = None if modified_ms is None else min(max(modified_ms, 0), now_ms)
    is_kept = copy is not None and copy.size == removed.copy.size
    back = store.copy(copy, removed.key, modified_ms) if copy is not None and is_kept else None
    if copy is None or back is None:
        raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"The copy {removed.copy.key} is gone or was altered.")
    return back, demand_same(store, copy, back), times_of_copies.noted_ms(copy)


def _modified_ms(removed: Receipt, copy_key: str) -> int | None:
    """When the object was modified, by its receipt, otherwise by the key of its copy."""
    original = quarantined(copy_key)
    return original.last_modified_ms if removed.modified_ms is None and original else removed.modified_ms


def _same_as_removed(store: WritableObjectStore, found: StoredObject, copy: QuarantinedCopy) -> str | None:
    """How an object was found to have the bytes of its copy; None if the copy is gone and only the size tells.

    Raises TieredctlError `removal-failed` if it has other bytes.
    """
    kept = store.head(copy.key)
    if kept is None and found.size == copy.size:
        return None
    compared_by = kept and same_by(store, found, kept)
    if compared_by is None:
        raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"The key {found.key} now holds another object.")
    return compared_by


def failed(
    key: str, now_ms: int, error: TieredctlError, copy: QuarantinedCopy | None = None, modified_ms: int | None = None
) -> Receipt:
    """The receipt of a failure."""
    return Receipt(
        ReceiptStep.FAILED, key, now_ms, copy=copy, error=f"{error.code}: {error.message}", modified_ms=modified_ms
    )


def not_in_its_place(key: str, store: str) -> Finding:
    """The finding that an object was removed, or is in quarantine, and now has an owner."""
    message = "it was removed, and brokers may read it now"
    return Finding(FindingCode.OBJECT_MISSING, f"{store}/{key}", message, {"key": key})

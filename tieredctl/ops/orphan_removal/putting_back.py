"""Puts one object back from quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.removal import OriginalTime, Receipt, ReceiptStep
from tieredctl.ops.guards.comparison import demand_same, same_bytes
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes, note_original_times
from tieredctl.ops.guards.own_objects import QUARANTINE, TIMES_OF_RESTORED
from tieredctl.ops.guards.quarantine_keys import quarantined
from tieredctl.ops.orphan_removal.preparation import Evidence
from tieredctl.ports.object_store import RESERVED_FOLDER, ObjectStore, StoredObject, WritableObjectStore


class PutBack(NamedTuple):
    """What became of one object that was to be put back."""

    receipt: Receipt
    time: OriginalTime | None = None
    """Its original time, if it was put back just now and its copy's note tells."""
    is_unverified: bool = False
    """Whether it is back although nothing tells whether these are the bytes that were removed."""


def put_back(
    store: WritableObjectStore,
    removed: Receipt,
    now_ms: int,
    evidence: Evidence,
    times_of_copies: OriginalTimes = NO_ORIGINAL_TIMES,
) -> PutBack:
    """Copies an object back to where it was, with its attributes, unless it is there; only if the bytes there are those
    that were removed.

    Its copy stays in quarantine. If it cannot be put back, a receipt FAILED says why.
    """
    time = None
    try:
        _demand_own_copy(removed)
        current = store.head(removed.key)
        if current is None:
            current, compared_by, original_ms = _copied_back(store, removed, now_ms, evidence, times_of_copies)
            if original_ms is not None:
                time = OriginalTime(current.key, current.size, current.last_modified_ms, current.version, original_ms)
        else:
            compared_by = _same_as_removed(store, current, removed, evidence)
            if removed.step is ReceiptStep.RESTORED:
                return PutBack(removed)
    except TieredctlError as error:
        return PutBack(failed(removed, now_ms, error))
    receipt = removed._replace(
        step=ReceiptStep.RESTORED, at_ms=now_ms, size=current.size, compared_by=compared_by, error=None
    )
    return PutBack(receipt, time, is_unverified=compared_by is None)


def would_be_put_back(store: ObjectStore, removed: Receipt, evidence: Evidence) -> int | None:
    """The size of an object that `put_back` would copy back; None for one that is there. Raises TieredctlError where it
    would fail."""
    _demand_own_copy(removed)
    current = store.head(removed.key)
    if current is not None:
        _same_as_removed(store, current, removed, evidence)
        return None
    return _verified_copy(store, removed, evidence).size


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
    store: WritableObjectStore, removed: Receipt, now_ms: int, evidence: Evidence, times_of_copies: OriginalTimes
) -> tuple[StoredObject, str | None, int | None]:
    """The new object, how it was found to have the bytes that were removed (None if that is only accepted), and since
    when the store has had them by the copy's note."""
    copy = _verified_copy(store, removed, evidence)
    modified_ms = _modified_ms(removed, copy.key)
    modified_ms = None if modified_ms is None else min(max(modified_ms, 0), now_ms)
    back = store.copy(copy, removed.key, modified_ms)
    if back is None:
        raise TieredctlError(ErrorCode.COPY_ALTERED, f"The copy {copy.key} was written or removed meanwhile.")
    compared_by = _demand_as_removed(store, back, copy, removed, evidence)
    return back, compared_by, times_of_copies.noted_ms(copy)


def _verified_copy(store: ObjectStore, removed: Receipt, evidence: Evidence) -> StoredObject:
    """The copy to put back. Raises TieredctlError if there is none, or it may not be put back."""
    if removed.copy is None:
        raise TieredctlError(
            ErrorCode.REMOVAL_FAILED, f"{removed.key} was deleted without a copy: it cannot be put back."
        )
    # A run that was killed may have copied the same bytes again, which gave the copy another version.
    copy = store.head(removed.copy.key)
    if copy is None:
        raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"The copy {removed.copy.key} is gone.")
    if copy.size != removed.copy.size:
        raise TieredctlError(ErrorCode.COPY_ALTERED, f"The copy {copy.key} has another size.")
    evidence.demand_copy(copy, removed)
    return copy


def _demand_as_removed(
    store: WritableObjectStore, back: StoredObject, copy: StoredObject, removed: Receipt, evidence: Evidence
) -> str | None:
    """How an object just made from its copy was found to hold what was removed, None if that is only accepted; one that
    does not is deleted."""
    try:
        held = evidence.demand_original(back, removed)
    except TieredctlError:
        # Of a store's own copy of what was looked at, also those checksums tell that others could imitate.
        same = demand_same(store, copy, back)
        if same.is_vouched_for:
            return same.by
        store.delete([back])
        raise
    if held is None:
        demand_same(store, copy, back)
    return held


def _modified_ms(removed: Receipt, copy_key: str) -> int | None:
    """When the object was modified, by its receipt, otherwise by the key of its copy."""
    original = quarantined(copy_key)
    return original.last_modified_ms if removed.modified_ms is None and original else removed.modified_ms


def _same_as_removed(store: ObjectStore, current: StoredObject, removed: Receipt, evidence: Evidence) -> str | None:
    """How an object was found to have the bytes that were removed; None if that is only accepted: then they are its
    copy's, if there is one.

    Raises TieredctlError if it has others, or nothing tells.
    """
    compared_by = evidence.demand_original(current, removed)
    copy = None if removed.copy is None or compared_by is not None else store.head(removed.copy.key)
    is_other = removed.copy is not None and current.size != removed.copy.size
    if is_other or (copy is not None and same_bytes(store, current, copy) is None):
        raise TieredctlError(ErrorCode.COPY_ALTERED, f"The key {current.key} now holds another object.")
    return compared_by


def failed(about: Receipt, now_ms: int, error: TieredctlError) -> Receipt:
    """The receipt of a failure; what is known of the object and its copy stays."""
    return about._replace(
        step=ReceiptStep.FAILED, at_ms=now_ms, compared_by=None, error=f"{error.code}: {error.message}"
    )


def not_in_its_place(key: str, store: str, *, is_purged: bool = False) -> Finding:
    """The finding that an object was removed, or is in quarantine, and now has an owner; or its copy was purged."""
    message = f"it was {'deleted for good' if is_purged else 'removed'}, and brokers may read it now"
    return Finding(FindingCode.OBJECT_MISSING, f"{store}/{key}", message, {"key": key})

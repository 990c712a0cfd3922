"""Prepares planned objects for deletion: copies them to quarantine, or checks what exists.

Whether an object holds the bytes that a plan removed.

What was sealed when they were copied decides. A receipt is a claim that others may have altered: its checksum counts
only where no seal is to be expected. Without either the bytes are unverified, and nothing is put back unless the
operator accepts that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import CopiedBytes, PlannedObject, QuarantinedCopy, Receipt, ReceiptStep, RemovalMode
from tieredctl.ops.guards.comparison import KnownBytes, Sameness, demand_same, held_by, is_there
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.sealed_notes import NotedBytes, copied_bytes, read_noted_bytes
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore

_SECOND_MS = 1_000
_MAY_BE_GONE = (ErrorCode.OBJECT_MISSING, ErrorCode.REMOVAL_FAILED, ErrorCode.UNREADABLE)
"""How comparing fails for an object that is removed or rewritten meanwhile."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A planned object as it was found. If it is not to be deleted, `step` says what became of it."""

    planned: PlannedObject
    found: StoredObject | None = None
    copy: StoredObject | None = None
    step: ReceiptStep | None = None
    error: TieredctlError | None = None
    compared: Sameness | None = None
    """How the copy was found to hold the same bytes."""
    claimed: Receipt | None = None
    """An earlier run's receipt, of a copy that holds what it removed."""

    @property
    def copied(self) -> CopiedBytes | None:
        """What there is to note of the copy that was made."""
        return None if self.copy is None or self.compared is None else copied_bytes(self.copy, self.compared.checksums)

    def receipt(self, step: ReceiptStep, now_ms: int) -> Receipt:
        """What became of it. A list of keys has no times of its own: those of the object that was found count."""
        if self.claimed is not None:
            return self.claimed._replace(step=step, at_ms=now_ms, size=self.planned.size, error=None)
        compared, original = self.compared, self.found
        return Receipt(
            *(step, self.planned.key, now_ms, self.planned.size, quarantined_copy(self.copy)),
            compared_by=compared and compared.by,
            modified_ms=(original or self.planned).last_modified_ms,
            version=original and original.version,
            checksums=compared and compared.checksums,
        )


def look(store: ObjectStore, planned: PlannedObject) -> Prepared:
    """What the store has of one object, or what went wrong.

    Raises TieredctlError `world-changed` if its key holds other bytes than planned.
    """
    try:
        stored = store.head(planned.key)
    except TieredctlError as error:
        return Prepared(planned, step=ReceiptStep.FAILED, error=error)
    if stored is not None and not _is_as_planned(stored, planned):
        raise written_since(planned.key)
    return Prepared(planned, stored)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What decides how a plan's objects are prepared."""

    store: WritableObjectStore
    cluster_id: str
    plan_id: str
    mode: RemovalMode
    noted: Evidence
    """The evidence of what earlier runs of the plan removed."""

    def prepare(self, looked_at: Prepared, before: Receipt | None) -> Prepared:
        """Prepares one object that was looked at; `before` is an earlier run's receipt for it. Raises as `look`."""
        planned, original = looked_at.planned, looked_at.found
        if looked_at.step is not None:
            return looked_at
        try:
            if original is None:
                return self._absent(planned, before)
            if self.mode is RemovalMode.DELETE:
                return Prepared(planned, original)
            copy = self.store.copy(original, quarantine_key(self.cluster_id, self.plan_id, planned))
            if copy is None:
                return self._absent(planned, before)
            compared = self._compared(original, copy)
            if compared is None:
                return self._absent(planned, before)
            return Prepared(planned, original, copy, compared=compared)
        except TieredctlError as error:
            if error.code is ErrorCode.WORLD_CHANGED:
                raise
            return Prepared(planned, step=ReceiptStep.FAILED, error=error)

    def _compared(self, original: StoredObject, copy: StoredObject) -> Sameness | None:
        """How the copy was found to hold the same bytes; None if the original is gone or was replaced."""
        try:
            return demand_same(self.store, original, copy)
        except TieredctlError as error:
            if error.code not in _MAY_BE_GONE or is_there(self.store, original):
                raise
            return None

    def _absent(self, planned: PlannedObject, before: Receipt | None) -> Prepared:
        """What became of an object that is no longer there as planned."""
        current = self.store.head(planned.key)
        if current is not None:
            if not _is_as_planned(current, planned):
                raise written_since(planned.key)
            raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"{planned.key} exists, but could not be copied.")
        if self.mode is RemovalMode.DELETE:
            # An earlier run that could not record the outcome may have deleted it.
            return Prepared(planned, step=ReceiptStep.GONE if before is None else ReceiptStep.REMOVED)
        copy = self.store.head(quarantine_key(self.cluster_id, self.plan_id, planned))
        if copy is None or before is None or before.copy is None:
            # Nothing is deleted before its copy is on record: whoever deleted it, no run of this plan did.
            return Prepared(planned, step=ReceiptStep.GONE)
        # An earlier run deleted it, and was stopped before it could record that.
        self.noted.demand_copy(copy, before)
        return Prepared(planned, copy=copy, step=ReceiptStep.REMOVED, claimed=before)


def _is_as_planned(stored: StoredObject, planned: PlannedObject) -> bool:
    if stored.size != planned.size:
        return False
    if planned.version is not None:
        return stored.version == planned.version
    # An inventory may report times in whole seconds.
    return stored.last_modified_ms // _SECOND_MS == planned.last_modified_ms // _SECOND_MS


def quarantined_copy(stored: StoredObject | None) -> QuarantinedCopy | None:
    """Where a copy is, for receipts."""
    return None if stored is None else QuarantinedCopy(stored.key, stored.size, stored.last_modified_ms, stored.version)


def written_since(key: str) -> TieredctlError:
    """The error for an object that is not the one that was planned."""
    return TieredctlError(ErrorCode.WORLD_CHANGED, f"{key} was rewritten after planning.")


@dataclass(slots=True)
class Evidence:
    """What is known of the bytes that one plan removed."""

    store: ObjectStore
    key: bytes | None
    """Opens the seals."""
    plan_id: str
    receipts_in_store: bool
    """Whether the receipts are where the copies are: whoever could alter these could alter both."""
    accept_unverified: bool = False
    """Whether bytes count of which nothing is known but their size; never those that are known to be others."""
    _noted: NotedBytes | None = None
    _reading: Lock = field(default_factory=Lock)

    def demand_copy(self, copy: StoredObject, removed: Receipt) -> str | None:
        """How a copy in quarantine was found to hold the bytes that were removed; None if that is only accepted.

        Raises TieredctlError `copy-altered` if it holds others, `copy-unverified` if nothing tells.
        """
        copied = self._known_copies(removed)
        return self._demand(copy, copied, removed, must_be_untouched=True)

    def demand_original(self, stored: StoredObject, removed: Receipt) -> str | None:
        """The evidence that an object in the place of the removed one holds its bytes, as in `demand_copy`."""
        copied = self._known_copies(removed)
        if copied is None and removed.version is not None and self._receipts_count:
            # Of what was to be deleted without a copy, the version tells whether it ever was.
            copied = [KnownBytes(removed.size, removed.checksums or {}, removed.version, None)]
        return self._demand(stored, copied, removed, must_be_untouched=False)

    def _demand(
        self, stored: StoredObject, accepted: Sequence[KnownBytes] | None, removed: Receipt, *, must_be_untouched: bool
    ) -> str | None:
        if accepted is None:
            if self.accept_unverified:
                return None
            message = f"Nothing tells whether {stored.key} holds the bytes of {removed.key} that were removed."
            raise TieredctlError(ErrorCode.COPY_UNVERIFIED, message)
        for one in accepted:
            held = held_by(self.store, stored, one, must_be_untouched=must_be_untouched)
            if held is not None:
                return held
        raise TieredctlError(
            ErrorCode.COPY_ALTERED, f"{stored.key} does not hold the bytes of {removed.key} that were removed."
        )

    def _known_copies(self, removed: Receipt) -> Sequence[KnownBytes] | None:
        """What is known of the copies of an object; None if nothing is."""
        sealed = self._sealed.by_original.get(removed.key, ())
        if sealed:
            return [KnownBytes(one.size, one.checksums, one.version, one.last_modified_ms) for one in sealed]
        if removed.checksums is not None and removed.copy is not None and self._receipts_count:
            copy = removed.copy
            return [KnownBytes(copy.size, removed.checksums, copy.version, copy.last_modified_ms)]
        return None

    @property
    def _receipts_count(self) -> bool:
        """Whether no seal is to be expected: whoever deleted the seals beside stored receipts could have written these
        too, so that nothing is removed with stored receipts and without a key. Where unverified bytes are accepted,
        those that receipts contradict are not."""
        if self.accept_unverified:
            return True
        return self._sealed.are_all_open and not self.receipts_in_store

    @property
    def _sealed(self) -> NotedBytes:
        with self._reading:
            if self._noted is None:
                self._noted = read_noted_bytes(self.store, self.key, self.plan_id)
            return self._noted

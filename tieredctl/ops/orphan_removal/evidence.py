"""Whether an object holds the bytes that a plan removed.

What was sealed when they were copied decides. A receipt is a claim that others may have altered: its checksum counts
only where no seal is to be expected. Without either the bytes are unverified, and nothing is put back unless the
operator accepts that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import Receipt
from tieredctl.ops.guards.comparison import KnownBytes, held_by
from tieredctl.ops.guards.noted_bytes import NotedBytes, read_noted_bytes
from tieredctl.ports.object_store import ObjectStore, StoredObject


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
        known = self._known_copies(removed)
        return self._demand(copy, known, removed, must_be_untouched=True)

    def demand_original(self, found: StoredObject, removed: Receipt) -> str | None:
        """The same for an object in the place of the one that was removed."""
        known = self._known_copies(removed)
        if known is None and removed.version is not None and self._receipts_count:
            # Of what was to be deleted without a copy, the version tells whether it ever was.
            known = [KnownBytes(removed.size, removed.checksums or {}, removed.version, None)]
        return self._demand(found, known, removed, must_be_untouched=False)

    def _demand(
        self, found: StoredObject, known: Sequence[KnownBytes] | None, removed: Receipt, *, must_be_untouched: bool
    ) -> str | None:
        if known is None:
            if self.accept_unverified:
                return None
            message = f"Nothing tells whether {found.key} holds the bytes of {removed.key} that were removed."
            raise TieredctlError(ErrorCode.COPY_UNVERIFIED, message)
        for one in known:
            held = held_by(self.store, found, one, must_be_untouched=must_be_untouched)
            if held is not None:
                return held
        raise TieredctlError(
            ErrorCode.COPY_ALTERED, f"{found.key} does not hold the bytes of {removed.key} that were removed."
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

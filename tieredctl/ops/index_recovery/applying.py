"""Puts rebuilt indexes into the store: each as a whole, and never over an object without a copy in quarantine.

After an interruption another run continues: repaired parts are found sound, and a damaged object is copied to the same
place in quarantine as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.protocol import Part
from tieredctl.model.interruption import nothing_is_left, unbroken
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.comparison import same_by
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.index_recovery.index_plan import IndexRecoveryPlan, PlannedPart, finished_segment
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.storage.protocol import Capability, StoredObject, WritableObjectStore


@dataclass(slots=True, kw_only=True)
class IndexRecoveryOutcome(Outcome):
    """How much of a plan was applied."""

    plan: IndexRecoveryPlan
    written: list[Part] = field(default_factory=list)
    quarantined: dict[Part, str] = field(default_factory=dict)
    """The keys of the copies of what was replaced."""

    @property
    def left(self) -> int:
        """How many parts are not sound yet."""
        return len(self.plan.to_write()) - len(self.written) + len(self.plan.impossible())

    def rows(self) -> list[Document]:
        """The plan's rows, each with its outcome."""
        return [
            {
                **part.document(),
                "written": part.found.part in self.written,
                "quarantinedAs": self.quarantined.get(part.found.part),
            }
            for part in self.plan.parts
        ]


def demand_conditional_writes(store: WritableObjectStore) -> None:
    """Raises TieredctlError `store-incapable` for a store that would overwrite an object written by others
    meanwhile."""
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, f"{store.url} does not support conditional writes.")


@dataclass(frozen=True, slots=True)
class IndexRecovery:
    """One run over a plan."""

    plan: IndexRecoveryPlan
    store: WritableObjectStore
    read_metadata: Callable[[], EventStream]
    """Reads the metadata once more, up to its current end offsets."""

    def run(self, lease: Hold) -> IndexRecoveryOutcome:
        """Writes what the plan has to write. Whatever stops it is in the outcome."""
        outcome = IndexRecoveryOutcome(plan=self.plan)
        try:
            cluster_id = self._demand_unchanged()
            parts = self.plan.to_write()
            for part in parts:
                lease.renew()
                with unbroken():
                    self._write(part, cluster_id, outcome)
                    outcome.written.append(part.found.part)
                    if part is parts[-1]:
                        nothing_is_left()
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _demand_unchanged(self) -> str | None:
        """The cluster's id, if the metadata has it. Raises TieredctlError where the segment changed since it was read:
        an object written for a segment that is being deleted would be left over."""
        segment_id, stream = self.plan.metadata.segment_id, self.read_metadata()
        if finished_segment(stream, segment_id).metadata != self.plan.metadata:
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, f"The metadata of segment {segment_id} changed since it was read."
            )
        log = self.plan.log
        if log is None or self.store.head(log.key) != log:
            raise TieredctlError(ErrorCode.WORLD_CHANGED, "The segment's log was rewritten since it was read.")
        return stream.source.cluster_id

    def _write(self, part: PlannedPart, cluster_id: str | None, outcome: IndexRecoveryOutcome) -> None:
        if part.key is None or part.rebuilt is None:
            raise TypeError(f"{part.found.part} has nothing to write")
        if part.stored is None:
            done = self.store.put_if_absent(part.key, part.rebuilt)
        else:
            outcome.quarantined[part.found.part] = self._quarantine(part.stored, cluster_id)
            done = self.store.replace(part.stored, part.rebuilt)
        # A retry after a lost answer finds the object already written.
        if done is None and not self._is_there(part.key, part.rebuilt):
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, f"{part.key} was written by another process since it was checked."
            )

    def _quarantine(self, stored: StoredObject, cluster_id: str | None) -> str:
        """Copies an object to quarantine; returns the copy's key."""
        version = sha256(stored.version.encode()).hexdigest()[:12]
        key = quarantine_key(cluster_id, f"{self.plan.metadata.segment_id}-{version}", stored)
        copy = self.store.copy(stored, key)
        if copy is None or same_by(self.store, stored, copy) is None:
            message = f"{stored.key} could not be copied to quarantine and was not changed."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        return key

    def _is_there(self, key: str, data: bytes) -> bool:
        found = self.store.head(key)
        return found is not None and found.size == len(data) and self.store.read(key) == data

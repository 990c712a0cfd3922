"""Remembers in the store which plans were used up: a plan removes once."""

from __future__ import annotations

from dataclasses import replace

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.removal_files import PLAN_RECORD
from tieredctl.model.removal import PlanRecord, PlanUse, ReceiptsHeader
from tieredctl.ops.guards.own_objects import ledger_key
from tieredctl.storage.protocol import Capability, ObjectStore, StoredObject, WritableObjectStore

_ORDER = tuple(PlanUse)
_MOST_TRIES = 10
"""How often a record is written before it is believed that the store will never take it."""


class Ledger:
    """What a store remembers of one plan.

    In a store without Capability.CONDITIONAL_WRITE, whose user sees to it that runs do not meet, a record is written
    and read back.
    """

    def __init__(self, store: WritableObjectStore, record: PlanRecord, plan_id: str) -> None:
        """`record` is what is to be remembered of the plan; its use is told later."""
        self._store = store
        self._plan_id = plan_id
        self._key = ledger_key(plan_id)
        self._record = record

    def use(self) -> PlanUse | None:
        """As `plan_use` tells it."""
        return plan_use(self._store, self._record, self._plan_id)

    def record(self, use: PlanUse) -> None:
        """Remembers how far it went. Raises TieredctlError `lease-lost` where another run went further meanwhile,
        `store-incapable` where the store does not take what it is given."""
        for _ in range(_MOST_TRIES):
            current = self._store.head(self._key)
            text = PLAN_RECORD.encode(replace(self._known_as_less_than(use) or self._record, use=use))
            if self._is_written(current, text):
                return
        message = f"{self._store.url} did not take {self._key} in {_MOST_TRIES} tries, although nothing else wrote it."
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, message)

    def _known_as_less_than(self, use: PlanUse) -> PlanRecord | None:
        try:
            found = plan_record(self._store, self._plan_id)
        except TieredctlError as error:
            # What is undone needs no proof of what was done, and is on record again.
            if error.code is ErrorCode.LEDGER_DAMAGED and use is PlanUse.RESTORED:
                return None
            raise
        if found is None:
            return None
        known = _same_plan(self._store, self._record, found, self._plan_id).use
        if _ORDER.index(known) > _ORDER.index(use):
            message = f"Another run took over this plan, which is {known.value} now."
            raise TieredctlError(ErrorCode.LEASE_LOST, message)
        return found

    def _is_written(self, current: StoredObject | None, text: bytes) -> bool:
        if Capability.CONDITIONAL_WRITE not in self._store.capabilities:
            self._store.write(self._key, text)
            return self._store.head(self._key) is not None and self._store.read(self._key) == text
        if current is None:
            return self._store.put_if_absent(self._key, text) is not None
        return self._store.replace(current, text) is not None


def plan_use(store: ObjectStore, record: PlanRecord, plan_id: str) -> PlanUse | None:
    """How far the use of the plan of a record went; None where it was never begun. Raises TieredctlError `plan-altered`
    where another plan of this id was used, `ledger-damaged` where what is remembered cannot be read."""
    found = plan_record(store, plan_id)
    return None if found is None else _same_plan(store, record, found, plan_id).use


def _same_plan(store: ObjectStore, record: PlanRecord, found: PlanRecord, plan_id: str) -> PlanRecord:
    if None not in (found.plan_digest, record.plan_digest) and found.plan_digest != record.plan_digest:
        raise TieredctlError(ErrorCode.PLAN_ALTERED, f"{ledger_key(plan_id)} of {store.url} is of another plan.")
    return found


def plan_record(store: ObjectStore, plan_id: str) -> PlanRecord | None:
    """What a store remembers of a plan; None for nothing. Raises TieredctlError `ledger-damaged` where that cannot be
    read."""
    key = ledger_key(plan_id)
    if store.head(key) is None:
        return None
    try:
        return PLAN_RECORD.decode(store.read(key))
    except DecodeError as error:
        raise TieredctlError(
            ErrorCode.LEDGER_DAMAGED, f"{key} of {store.url} cannot be read: {error.reason}."
        ) from None


def record_of(plan: ReceiptsHeader) -> PlanRecord:
    """What is to be remembered of a plan, as far as its receipts tell."""
    return PlanRecord(PlanUse.APPLYING, plan.cluster_id, plan.layout, plan.plan_digest or None)

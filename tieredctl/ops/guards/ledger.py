"""Records in the store which plans were used: a plan can be applied once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.removal_files import PLAN_RECORD
from tieredctl.model.removal import PlanRecord, PlanUse, ReceiptsHeader
from tieredctl.ops.guards.own_objects import LEDGER_FOLDER, ledger_key
from tieredctl.ports.object_store import Capability, ObjectStore, StoredObject, WritableObjectStore

_ORDER = tuple(PlanUse)
_MOST_TRIES = 10
"""How often a record is written before giving up on the store."""


class Ledger:
    """What a store has on record about one plan.

    In a store without Capability.CONDITIONAL_WRITE, whose user makes sure that only one run is active, a record is
    written and read back.
    """

    def __init__(self, store: WritableObjectStore, record: PlanRecord, plan_id: str) -> None:
        """`record` is what to remember about the plan; its use is set later."""
        self._store = store
        self._plan_id = plan_id
        self._key = ledger_key(plan_id)
        self._record = record

    def use(self) -> PlanUse | None:
        """See `plan_use`."""
        return plan_use(self._store, self._record, self._plan_id)

    def record(self, use: PlanUse) -> None:
        """Records how far the plan was applied. Raises TieredctlError `lease-lost` if another run got further,
        `store-incapable` if the store does not take the record."""
        for _ in range(_MOST_TRIES):
            current = self._store.head(self._key)
            text = PLAN_RECORD.encode(replace(self._known_as_less_than(use) or self._record, use=use))
            if self._is_written(current, text):
                return
        message = (
            f"{self._store.url} did not store {self._key} in {_MOST_TRIES} attempts, though nothing else wrote it."
        )
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, message)

    def _known_as_less_than(self, use: PlanUse) -> PlanRecord | None:
        try:
            recorded = plan_record(self._store, self._plan_id)
        except TieredctlError as error:
            # Undoing needs no proof of what was done, and puts the plan on record again.
            if error.code is ErrorCode.LEDGER_DAMAGED and use is PlanUse.RESTORED:
                return None
            raise
        if recorded is None:
            return None
        recorded_use = _same_plan(self._store, self._record, recorded, self._plan_id).use
        if _ORDER.index(recorded_use) > _ORDER.index(use):
            message = f"Another run took over this plan, which is now {recorded_use.value}."
            raise TieredctlError(ErrorCode.LEASE_LOST, message)
        return recorded

    def _is_written(self, current: StoredObject | None, text: bytes) -> bool:
        if Capability.CONDITIONAL_WRITE not in self._store.capabilities:
            self._store.write(self._key, text)
            return self._store.head(self._key) is not None and self._store.read(self._key) == text
        if current is None:
            return self._store.put_if_absent(self._key, text) is not None
        return self._store.replace(current, text) is not None


def plan_use(store: ObjectStore, record: PlanRecord, plan_id: str) -> PlanUse | None:
    """How far the plan of a record was applied; None if that never began. Raises TieredctlError `plan-altered` if
    another plan with this id was used, `ledger-damaged` if the record in the store cannot be read."""
    recorded = plan_record(store, plan_id)
    return None if recorded is None else _same_plan(store, record, recorded, plan_id).use


def _same_plan(store: ObjectStore, record: PlanRecord, recorded: PlanRecord, plan_id: str) -> PlanRecord:
    if None not in (recorded.plan_digest, record.plan_digest) and recorded.plan_digest != record.plan_digest:
        raise TieredctlError(ErrorCode.PLAN_ALTERED, f"{ledger_key(plan_id)} in {store.url} belongs to another plan.")
    return recorded


def plan_record(store: ObjectStore, plan_id: str) -> PlanRecord | None:
    """What a store has on record about a plan; None if nothing. Raises TieredctlError `ledger-damaged` if the record
    cannot be read."""
    key = ledger_key(plan_id)
    if store.head(key) is None:
        return None
    try:
        return PLAN_RECORD.decode(store.read(key))
    except DecodeError as error:
        raise TieredctlError(
            ErrorCode.LEDGER_DAMAGED, f"{key} in {store.url} cannot be read: {error.reason}."
        ) from None


def plans_on_record(store: ObjectStore) -> Iterator[tuple[str, PlanRecord]]:
    """All plans that a store has on record, by their ids, those last that were recorded first; without what cannot be
    read, which proves nothing."""
    stored = sorted(store.list(LEDGER_FOLDER), key=lambda one: one.last_modified_ms, reverse=True)
    for one in stored:
        plan_id = one.key.removeprefix(LEDGER_FOLDER).removesuffix(".json")
        if ledger_key(plan_id) == one.key:
            try:
                yield plan_id, PLAN_RECORD.decode(store.read(one.key))
            except DecodeError:
                continue


def record_of(plan: ReceiptsHeader) -> PlanRecord:
    """What to remember about a plan, as far as its receipts show."""
    return PlanRecord(PlanUse.APPLYING, plan.cluster_id, plan.layout, plan.plan_digest or None)

"""Remembers in the store which plans were used up: a plan removes once."""

from __future__ import annotations

import json
from enum import StrEnum

from tieredctl.errors import TieredctlError
from tieredctl.model.removal import ReceiptsHeader
from tieredctl.ops.removal.own_objects import ledger_key
from tieredctl.storage.protocol import Capability, StoredObject, WritableObjectStore


class PlanUse(StrEnum):
    """How far the use of a plan went."""

    APPLYING = "applying"
    """Begun; what is left may be removed by another run."""
    APPLIED = "applied"
    RESTORED = "restored"


_ORDER = tuple(PlanUse)


class Ledger:
    """What a store remembers of one plan. A store without Capability.CONDITIONAL_WRITE remembers nothing."""

    def __init__(self, store: WritableObjectStore, plan: ReceiptsHeader) -> None:
        self._store = store
        self._key = ledger_key(plan.plan_id)
        self._plan = plan

    def use(self) -> PlanUse | None:
        """How far it went; None where it was never begun. Raises TieredctlError `plan-altered` where another plan of
        this id was used."""
        return None if self._store.head(self._key) is None else self._read_use()

    def record(self, use: PlanUse) -> None:
        """Remembers how far it went. Raises TieredctlError `lease-lost` where another run went further meanwhile."""
        if Capability.CONDITIONAL_WRITE not in self._store.capabilities:
            return
        plan = self._plan
        fields = {"use": use.value, "digest": plan.plan_digest, "clusterId": plan.cluster_id, "layout": plan.layout}
        text = json.dumps(fields).encode()
        while self._written(self._known_as_less_than(use), text) is None:
            continue

    def _known_as_less_than(self, use: PlanUse) -> StoredObject | None:
        found = self._store.head(self._key)
        if found is not None and _ORDER.index(known := self._read_use()) > _ORDER.index(use):
            message = f"Another run took over this plan, which is {known.value} now."
            raise TieredctlError("lease-lost", message)
        return found

    def _read_use(self) -> PlanUse:
        fields = json.loads(self._store.read(self._key))
        if fields["digest"] != self._plan.plan_digest:
            raise TieredctlError("plan-altered", f"{self._key} of {self._store.url} is of another plan.")
        return PlanUse(fields["use"])

    def _written(self, current: StoredObject | None, text: bytes) -> StoredObject | None:
        if current is None:
            return self._store.put_if_absent(self._key, text)
        return self._store.replace(current, text)


def demand_made_for(store: WritableObjectStore, plan_id: str, cluster_id: str, layout: str) -> None:
    """Raises TieredctlError where the store remembers a plan as one of another cluster or layout: what it removed
    would look like nobody's to this one."""
    if store.head(ledger_key(plan_id)) is None:
        return
    fields = json.loads(store.read(ledger_key(plan_id)))
    if fields["clusterId"] != cluster_id:
        message = f"Plan {plan_id} removed objects of cluster {fields['clusterId']}, not of {cluster_id}."
        raise TieredctlError("another-cluster", message, hint="Give the metadata of that cluster.")
    if fields["layout"] != layout:
        message = f"Plan {plan_id} removed objects of layout {fields['layout']}, not of {layout}."
        raise TieredctlError("usage", message, hint=f"Give --layout {fields['layout']}.")

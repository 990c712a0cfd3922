"""What is planned to be removed, and how much of it: the same for whatever decides whose objects are."""

from __future__ import annotations

from dataclasses import dataclass, field

from tieredctl.model.ownership import OrphanCause
from tieredctl.model.removal import PlannedObject, RemovalMode
from tieredctl.ops.orphan_removal.plan_file import PlanWriter
from tieredctl.ops.remote.inventory import Totals


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What to plan. Times in ms."""

    plan_id: str
    mode: RemovalMode = RemovalMode.QUARANTINE
    cluster_id: str | None = None
    """For metadata that does not say it, or to make sure."""
    valid_for_ms: int = 24 * 3_600_000
    max_percent: float = 10.0
    """Of the store's objects; a plan of more is there to be looked at, and is not applied."""
    max_missing: int = 0
    """How many objects that are promised may be missing from the store; more is refused."""
    max_objects: int | None = None
    """What exceeds these two is left for another plan."""
    max_bytes: int | None = None
    causes: frozenset[str] = frozenset(OrphanCause)
    foreign_topic_ids: frozenset[str] = frozenset()
    unknown_keys: frozenset[str] = frozenset()
    allow_young: bool = False


@dataclass(slots=True)
class PlannedSoFar:
    """The objects of a plan in the making."""

    writer: PlanWriter
    options: PlanOptions
    left: int = 0
    """How many objects were left for another plan because of limits."""
    by_cause: dict[str, Totals] = field(default_factory=dict)
    """How much was planned, by cause, or by status for what was named."""

    def add(self, planned: PlannedObject) -> None:
        """Writes it into the plan, or leaves it."""
        if self._is_beyond_limits(planned):
            self.left += 1
            return
        self.writer.add(planned)
        totals = self.by_cause.setdefault(planned.cause or planned.status, Totals())
        totals.objects += 1
        totals.bytes += planned.size

    def _is_beyond_limits(self, planned: PlannedObject) -> bool:
        options, writer = self.options, self.writer
        return (options.max_objects is not None and writer.objects >= options.max_objects) or (
            options.max_bytes is not None and writer.bytes + planned.size > options.max_bytes
        )

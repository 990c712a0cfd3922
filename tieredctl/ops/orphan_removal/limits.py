"""What a plan may remove, by whoever applies it. What the plan's file claims counts only if it is signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ownership import OrphanCause
from tieredctl.model.removal import PlannedObject, RemovalMode
from tieredctl.ops.orphan_removal.plan_file import PlanFile, PlanWriter
from tieredctl.ops.orphans.object_columns import ObjectColumns
from tieredctl.ops.orphans.promised_segments import lacks_promised
from tieredctl.ops.remote.inventory import Totals

DEFAULT_AGE_MS = 24 * 3_600_000
LEAST_AGE_MS = 3_600_000
"""Younger objects may be removed only on explicit request."""
DEFAULT_PERCENT = 10.0


@dataclass(frozen=True, slots=True)
class GivenLimits:
    """The limits that were given as options; None for those that were not. Time in ms."""

    min_age_ms: int | None = None
    max_percent: float | None = None
    max_missing: int | None = None
    allow_young: bool = False
    foreign_topic_ids: frozenset[str] = frozenset()
    unknown_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be removed. Times in ms."""

    min_age_ms: int = DEFAULT_AGE_MS
    max_percent: float = DEFAULT_PERCENT
    """The largest share of the store's objects."""
    max_missing: int | None = 0
    """How many objects that are promised may be missing from the store; None for any number: nobody looks then."""
    foreign_topic_ids: frozenset[str] = frozenset()
    """Topics whose objects may be removed although this cluster never knew them."""
    unknown_keys: frozenset[str] = frozenset()
    """Keys that may be removed although no layout explains them."""
    removed_since_ms: int | None = None
    """Objects that tieredctl removed since then count as present: they were when the plan was made."""


def limits_of(plan: PlanFile, given: GivenLimits) -> Limits:
    """Raises TieredctlError `age-too-low` for an age that includes objects that may still be written.

    Options come first; without one, a signed plan keeps the limits that it was made with, and any other gets the
    defaults. What the plan does not name itself is never removed.
    """
    header = plan.header
    signed = Limits(
        *(header.min_age_ms, header.max_percent, header.max_missing or 0),
        *(header.foreign_topic_ids, header.unknown_keys, header.created_ms),
    )
    base = signed if plan.is_signed else Limits()
    if given.min_age_ms is not None:
        demand_age(given.min_age_ms, allow_young=given.allow_young)
    return Limits(
        base.min_age_ms if given.min_age_ms is None else given.min_age_ms,
        base.max_percent if given.max_percent is None else given.max_percent,
        base.max_missing if given.max_missing is None else given.max_missing,
        header.foreign_topic_ids & (base.foreign_topic_ids | given.foreign_topic_ids),
        header.unknown_keys & (base.unknown_keys | given.unknown_keys),
        base.removed_since_ms,
    )


def demand_signed(plan: PlanFile) -> None:
    """Raises TieredctlError `plan-unsigned` for a plan that anybody could have written."""
    if not plan.is_signed:
        message = f"{plan.path} is not signed with your key: somebody else may have written it."
        raise TieredctlError(ErrorCode.PLAN_UNSIGNED, message)


def demand_asked_for(plan: PlanFile, *, delete: bool) -> None:
    """Raises TieredctlError for a plan whose mode is not what was asked for, by `delete`.

    What cannot be undone is asked for by whoever applies it: a plan that anybody could have written only says so.
    """
    is_final = plan.header.mode is RemovalMode.DELETE
    if is_final and not plan.is_signed and not delete:
        message = f"{plan.path} deletes permanently, and is not signed with your key."
        raise TieredctlError(
            ErrorCode.PLAN_UNSIGNED, message, hint="Give --delete too if that is what you want: nothing undoes it."
        )
    if delete and not is_final:
        message = f"{plan.path} moves objects to quarantine."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Leave out --delete, or plan again with --delete.")


def demand_age(min_age_ms: int, *, allow_young: bool) -> None:
    """Raises TieredctlError `age-too-low` if a plan would include objects that may still be written."""
    if min_age_ms < LEAST_AGE_MS and not allow_young:
        message = "Objects younger than an hour may belong to a copy in progress: they are not removed."
        raise TieredctlError(ErrorCode.AGE_TOO_LOW, message)


def demand_share(planned: int, whole: int, max_percent: float, subject: str) -> None:
    """Raises TieredctlError `plan-too-large` if a plan has more of a store's objects than allowed."""
    demand_percent(planned, whole, max_percent, f"{planned} of the {whole} objects in {subject} would be removed")


def demand_percent(planned: int, whole: int, max_percent: float, sentence: str) -> None:
    """Raises as `demand_share` does, with a `sentence` about the objects; the hint has the share that would be
    enough."""
    if is_too_large(planned, whole, max_percent):
        hint = f"Look at them first; if all of them should go, give --max-percent {enough_percent(planned, whole)}."
        raise TieredctlError(ErrorCode.PLAN_TOO_LARGE, f"{sentence}: more than {max_percent:g} %.", hint=hint)


def is_too_large(planned: int, whole: int, max_percent: float) -> bool:
    """Whether a plan has more of a store's objects than allowed: nobody applies it then."""
    return planned * 100 > whole * max_percent


def enough_percent(planned: int, whole: int) -> int:
    """The share that would allow it, in whole percent."""
    return min(100, -(-planned * 100 // whole)) if whole else 100


def demand_promised(missing: Sequence[str], max_missing: int, subject: str) -> None:
    """Raises TieredctlError `promised-objects-missing` if a store lacks more of what is promised than allowed: what
    looks orphaned in it may be that, under other keys. `missing` are the keys."""
    if len(missing) > max_missing:
        message = f"{lacks_promised(missing, subject)}, such as {min(missing)}: what looks orphaned may be theirs."
        raise TieredctlError(ErrorCode.PROMISED_MISSING, message)


@dataclass(slots=True)
class StoreOverlap:
    """Whether a store has anything of the metadata's cluster, by the objects seen so far."""

    listed: int = 0
    explained: bool = False
    """The layout explains the key of at least one object,"""
    known: bool = False
    """and at least one belongs to a topic that the metadata or the cluster knows."""

    @property
    def is_sure(self) -> bool:
        """Whether enough was seen."""
        return self.explained and self.known

    def look_at(self, objects: ObjectColumns) -> None:
        """Some of the store's objects."""
        self.listed += len(objects.sizes)
        self.explained |= bool(objects.is_explained.any())
        self.known |= bool(objects.known_topic.any())

    def demand(self, subject: str, layout: str) -> None:
        """Raises TieredctlError `no-overlap` if there are objects, but none of this cluster."""
        if self.listed and not self.explained:
            message = f"Layout {layout} explains none of the objects in {subject}."
            raise TieredctlError(ErrorCode.NO_OVERLAP, message)
        if self.listed and not self.known:
            message = f"The metadata knows no topic with objects in {subject}: they belong to different clusters."
            raise TieredctlError(ErrorCode.NO_OVERLAP, message)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What to plan. Times in ms."""

    plan_id: str
    mode: RemovalMode = RemovalMode.QUARANTINE
    cluster_id: str | None = None
    """The cluster's id, for metadata that does not say it, or to make sure."""
    valid_for_ms: int = 24 * 3_600_000
    max_percent: float = 10.0
    """The share of the store's objects; a plan of more is there to be looked at, and is not applied."""
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

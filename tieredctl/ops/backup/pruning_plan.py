"""What `backup prune` would remove of a cluster's sets, and why the others stay.

Only sets before one that needs none of them go: what follows is one whole chain. Everything that is decided on here is
read, every byte; where anything is missing or altered, nothing is decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_subjects import BackupSetSubject
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import duration_text
from tieredctl.model.result_row import Column, Main, Quantity, ResultRow, Size, Wide
from tieredctl.ops.backup.manifests import FILES, Manifest
from tieredctl.ops.backup.sets import ClusterSets, KnownSet
from tieredctl.ops.documents import Document
from tieredctl.ports.object_store import ObjectStore, StoredObject

_NUMBERED = re.compile(r"(?:manifests|beginnings)/([0-9]{8})\.json", re.ASCII)
_IN_A_SET = re.compile(r"sets/([0-9]{8})-[0-9TZ]{16}-[0-9a-f]{8}/(.+)", re.ASCII)
_NEWEST = "it is the newest"
_WHOLE = "it is the newest that lacks nothing"
_OLD = "it is before those that stay, and none of them needs it"
_NEEDED = "a later set needs it"
_LEFT_OVER = "it was left over by a run or a prune that ended early"
_Store = TypeVar("_Store", bound=ObjectStore)


@dataclass(frozen=True, slots=True)
class KeepRules:
    """Which sets stay whatever else does: the `last` ones by number, and those younger than `within_ms`."""

    last: int | None
    within_ms: int | None

    def reason(self, place: int, age_ms: int) -> str | None:
        """Why the set at a place, 0 of the newest, stays; None where the rules do not keep it."""
        if self.last is not None and place < self.last:
            return f"it is one of the last {self.last}"
        if self.within_ms is not None and age_ms < self.within_ms:
            return f"it is not {duration_text(self.within_ms)} old"
        return None


class Action(StrEnum):
    """What becomes of a set."""

    KEEP = "keep"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PlannedSetRow(ResultRow):
    """A set as a plan shows it; without a time what is left over of one."""

    set_: Annotated[int, Column("SET")]
    action: Action
    created_ms: Annotated[int | None, Column("CREATED", Quantity.MOMENT)]
    bytes: Size[int]
    objects: Wide[int]
    base: Wide[int | None]
    reason: Main[str]


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """A set, or what is left over of one, and what becomes of it."""

    number: int
    action: Action
    reason: str
    objects: Sequence[StoredObject]
    """Its manifest first: a set without one is none."""
    manifest: Manifest | None

    @property
    def size(self) -> int:
        """The size of all its objects, in bytes."""
        return sum(one.size for one in self.objects)

    def row(self) -> PlannedSetRow:
        """As a result shows it."""
        created_ms, base = (None, None) if self.manifest is None else (self.manifest.created_ms, self.manifest.base)
        return PlannedSetRow(
            *(self.number, self.action, created_ms, self.size, len(self.objects), base, self.reason),
        )


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What goes and what stays."""

    url: str
    cluster_id: str
    rules: KeepRules
    first: int
    """The set with which those that stay begin."""
    kept: Mapping[int, str]
    """The checksums of the manifests of those that stay, by number."""
    sets: Sequence[PlannedSet]
    """All of them, by number."""

    def to_remove(self) -> list[PlannedSet]:
        """In the order in which they go."""
        return [one for one in self.sets if one.action is Action.REMOVE]

    def only_needed(self) -> int:
        """How many stay for no other reason than that a later one needs them."""
        return sum(one.reason == _NEEDED for one in self.sets)

    def source(self) -> Document:
        return {"clusterId": self.cluster_id, "from": self.url}

    def rows(self) -> list[PlannedSetRow]:
        return [one.row() for one in self.sets]

    def summary(self) -> Document:
        removed = self.to_remove()
        return {
            "planned": len(removed),
            "bytes": sum(one.size for one in removed),
            "kept": len(self.kept),
            "first": self.first,
            "keepLast": self.rules.last,
            "keepWithinMs": self.rules.within_ms,
        }

    def findings(self) -> list[Finding]:
        return []


def plan_prune(sets: ClusterSets[_Store], rules: KeepRules, now_ms: int) -> PrunePlan:
    """By the rules and the time; changes nothing. The newest set stays, the newest that lacks nothing, and each that
    one of those needs. A set is as old as the younger of its own time and the store's.

    Raises TieredctlError `undecodable` where anything is missing or altered, in sets that would go too, and as the
    store does.
    """
    listed = [*sets.store.list(f"{sets.cluster_id}/")]
    read_sets = _whole_sets(sets)
    written_ms = sets.written_ms()
    read_sets = {number: read_sets.get(number) or sets.read(number) for number in written_ms}
    if not read_sets:
        raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{sets.store.url} has no set of {sets.cluster_id} any more.")
    ages_ms = {number: now_ms - max(read_sets[number].manifest.created_ms, written_ms[number]) for number in read_sets}
    reasons = _reasons(read_sets, ages_ms, rules)
    first = _first(read_sets, min(reasons))
    parts = [*_parts(sets, listed, read_sets, reasons, first)]
    kept = {number: one.sha256 for number, one in read_sets.items() if number >= first}
    return PrunePlan(sets.store.url, sets.cluster_id, rules, first, kept, parts)


def _whole_sets(sets: ClusterSets[_Store]) -> dict[int, KnownSet]:
    """All sets, by number. Raises TieredctlError `undecodable` where anything of them is missing or altered."""
    damage, read_sets = sets.examined()
    if damage:
        more = f" (and {counted(len(damage) - 1, 'more finding')})" if len(damage) > 1 else ""
        message = f"Nothing can be pruned: {damage[0].subject}: {damage[0].message}{more}."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=_way_out(sets.cluster_id, damage, read_sets))
    return read_sets


def _way_out(cluster_id: str, damage: Sequence[Finding], read_sets: Mapping[int, KnownSet]) -> str:
    """What a person can do about damage, which is seen for as long as it is there: nothing removes it by itself."""
    last = max(one.about.number for one in damage if isinstance(one.about, BackupSetSubject))
    later = (number for number, one in read_sets.items() if number > last and one.manifest.base == number)
    first = next(later, None)
    if first is None:
        return (
            "See `tieredctl backup verify`. `tieredctl backup run --full` begins a chain that needs no set before it; "
            "then this says which objects to delete by hand."
        )
    return (
        f"See `tieredctl backup verify`. Set {first} and later ones are whole, and need none before: once you know the "
        f"cause, delete by hand, in this order, what of {cluster_id}/manifests/, {cluster_id}/beginnings/ and "
        f"{cluster_id}/sets/ has a number below {first:08}."
    )


def needed_objects(sets: ClusterSets[_Store], manifest: Manifest) -> dict[str, int | None]:
    """The sizes of the objects without which a set is none, by key; None of its manifest."""
    files = {sets.file_key(manifest, one.name): one.size for one in manifest.files}
    return {sets.manifest_key(manifest.number): None, **files}


def _reasons(read_sets: Mapping[int, KnownSet], ages_ms: Mapping[int, int], rules: KeepRules) -> dict[int, str]:
    """Why sets stay that the rules, or the caution of this, keep."""
    descending = sorted(read_sets, reverse=True)
    whole = next((number for number in descending if not read_sets[number].manifest.unread), None)
    reasons = {descending[0]: _NEWEST}
    if whole is not None:
        reasons.setdefault(whole, _WHOLE)
    for place, number in enumerate(descending):
        reason = rules.reason(place, ages_ms[number])
        if reason is not None:
            reasons.setdefault(number, reason)
    return reasons


def _first(read_sets: Mapping[int, KnownSet], oldest: int) -> int:
    """The set with which the events of `oldest` and of all after it begin."""
    first = oldest
    while (lower := min(one.manifest.base for number, one in read_sets.items() if number >= first)) < first:
        first = lower
    if first not in read_sets or read_sets[first].manifest.base != first:
        message = f"Nothing can be pruned: set {oldest} or a later one needs set {first}, which begins no chain."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="See `tieredctl backup verify`.")
    return first


def _parts(
    sets: ClusterSets[_Store],
    listed: Sequence[StoredObject],
    read_sets: Mapping[int, KnownSet],
    reasons: Mapping[int, str],
    first: int,
) -> Iterator[PlannedSet]:
    stored = {one.key: one for one in listed}
    keys = {number: needed_objects(sets, one.manifest) for number, one in read_sets.items()}
    kept = {key for number in read_sets if number >= first for key in keys[number]}
    old = {key for number in read_sets if number < first for key in keys[number]}
    doomed: dict[int, list[StoredObject]] = {}
    for one in listed:
        number = _number_of(one.key.removeprefix(f"{sets.cluster_id}/"), is_named=one.key in old)
        if number is None or number >= first:
            continue
        if one.key in kept:
            message = f"Nothing can be pruned: {one.key} lies with set {number}, and a later set needs it."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="See `tieredctl backup verify`.")
        doomed.setdefault(number, []).append(one)
    for number in sorted({*doomed, *read_sets}):
        manifest = read_sets[number].manifest if number in read_sets else None
        if number >= first:
            objects = [stored[key] for key in keys[number] if key in stored]
            yield PlannedSet(number, Action.KEEP, reasons.get(number, _NEEDED), objects, manifest)
        elif number in doomed:
            reason = _LEFT_OVER if manifest is None else _OLD
            yield PlannedSet(number, Action.REMOVE, reason, sorted(doomed[number], key=is_file), manifest)


def _number_of(name: str, *, is_named: bool) -> int | None:
    """The set that an object below a cluster's folder is of; None for what no run or prune left there."""
    numbered, within = _NUMBERED.fullmatch(name), _IN_A_SET.fullmatch(name)
    if numbered is not None:
        return int(numbered[1])
    return int(within[1]) if within is not None and (is_named or within[2] in FILES) else None


def is_file(stored: StoredObject) -> bool:
    """Rather than a manifest or a note, which go first."""
    return "/sets/" in stored.key

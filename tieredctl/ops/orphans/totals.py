"""How many objects and bytes got each verdict, and what keeping them costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import OrphanedObjects, UnknownObjects
from tieredctl.model.findings import Finding
from tieredctl.model.ownership import InProgressReason, ObjectStatus, OrphanCause, UnknownReason
from tieredctl.model.prices import StoragePrice
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601


@dataclass(slots=True)
class GroupTotals:
    """Objects and bytes with a verdict: bytes as stored, the oldest and newest time of modification in ms."""

    objects: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None

    def add(self, other: GroupTotals) -> None:
        """Adds the totals of other objects."""
        self.objects += other.objects
        self.bytes += other.bytes
        self.oldest_ms = min((time for time in (self.oldest_ms, other.oldest_ms) if time is not None), default=None)
        self.newest_ms = max((time for time in (self.newest_ms, other.newest_ms) if time is not None), default=None)


class Group(NamedTuple):
    """What objects are counted by; the storage class is empty if it is not known, and `reason` says why some objects
    are unknown or in progress."""

    topic: str
    topic_id: str
    status: ObjectStatus
    cause: OrphanCause | None
    storage_class: str
    reason: UnknownReason | InProgressReason | None


@dataclass(slots=True)
class ScanTotals:
    """The totals of a scan, as far as it has come."""

    price: StoragePrice | None
    """What storing costs; None where that is not known."""
    groups: dict[Group, GroupTotals] = field(default_factory=dict)

    def add(self, group: Group, totals: GroupTotals) -> None:
        """More objects of a group."""
        self.groups.setdefault(group, GroupTotals()).add(totals)

    def rows(self) -> list[Document]:
        """A row for each topic id and verdict: orphans first, the most bytes first, then by name."""
        rows: dict[Group, list[Group]] = {}
        for group in self.groups:
            rows.setdefault(group._replace(storage_class="", reason=None), []).append(group)
        ranked = sorted(((row, self._totals(groups)) for row, groups in rows.items()), key=_rank)
        return [_total_document(row, totals, self._cost(rows[row])) for row, totals in ranked]

    def summary(self, reserved: Document | None, gone: int, *, is_whole: bool) -> Document:
        """Objects and bytes by status and storage class, orphans by cause; how much is not owned, but too young to be
        orphaned; how much was passed over as tieredctl's own, None where that was not counted, how much was gone by the
        time that it was judged, and whether the metadata was whole."""
        groups, price = self.groups, self.price
        classes = sorted({group.storage_class for group in groups} - {""})
        return {
            "objects": sum(totals.objects for totals in groups.values()),
            "bytes": sum(totals.bytes for totals in groups.values()),
            "status": {
                one.value: self._sum([group for group in groups if group.status is one]) for one in ObjectStatus
            },
            "causes": {one.value: self._sum(self._of_cause(one)) for one in OrphanCause},
            "younger": self._sum(self._for_reason(InProgressReason.YOUNGER_THAN_MIN_AGE)),
            "storageClasses": {
                one: self._sum([group for group in groups if group.storage_class == one]) for one in classes
            },
            "reserved": reserved,
            "gone": gone,
            "currency": price.currency if price else None,
            "classesWithoutPrice": price.without_price(classes) if price else [],
            "complete": is_whole,
        }

    def findings(self, subject: str) -> Iterator[Finding]:
        """One for each cause of orphans, and one for each reason why objects that no event names are unknown; `subject`
        is the store."""
        for cause in OrphanCause:
            totals = self._sum(self._of_cause(cause))
            if totals["objects"]:
                objects = counted(totals["objects"], "orphaned object")
                message = f"{objects}, {size_text(totals['bytes'])}: {cause.value}"
                evidence = {"cause": cause.value, **totals}
                about = OrphanedObjects(totals["objects"])
                yield Finding(FindingCode.OBJECT_UNREFERENCED, subject, message, evidence, about=about)
        for reason in UnknownReason:
            totals = self._sum(self._for_reason(reason))
            if totals["objects"]:
                yield _may_be_only_copies(subject, reason, totals)

    def _sum(self, groups: Collection[Group]) -> Document:
        totals, cost = self._totals(groups), self._cost(groups)
        return {"objects": totals.objects, "bytes": totals.bytes, **({} if cost is None else {"monthlyCost": cost})}

    def _of_cause(self, cause: OrphanCause) -> list[Group]:
        return [group for group in self.groups if group.cause is cause]

    def _for_reason(self, reason: UnknownReason | InProgressReason) -> list[Group]:
        return [group for group in self.groups if group.reason is reason]

    def _totals(self, groups: Iterable[Group]) -> GroupTotals:
        totals = GroupTotals()
        for group in groups:
            totals.add(self.groups[group])
        return totals

    def _cost(self, groups: Iterable[Group]) -> float | None:
        """The cost of a month; None where no price is known."""
        class_bytes = Counter[str]()
        for group in groups:
            class_bytes[group.storage_class] += self.groups[group].bytes
        return self.price.monthly_cost_of(class_bytes) if self.price else None


def _may_be_only_copies(subject: str, reason: UnknownReason, totals: Document) -> Finding:
    of_one = totals["objects"] == 1
    objects = f"{counted(totals['objects'], 'object')}, {size_text(totals['bytes'])},"
    they = "it may be" if of_one else "they may be"
    if reason is UnknownReason.OLDER_THAN_METADATA:
        code = FindingCode.OBJECT_OLDER_THAN_METADATA
        are, them = ("is", "it") if of_one else ("are", "them")
        why = f"{are} older than the metadata that would name {them}: that was lost or recreated, and {they}"
    else:
        code = FindingCode.OBJECT_NOT_COVERED
        have, their = ("has", "its") if of_one else ("have", "their")
        why = f"{have} no event, and the metadata does not prove that {their} records are elsewhere: {they}"
    message = f"{objects} {why} the only copy of some records"
    return Finding(code, subject, message, totals, about=UnknownObjects(totals["objects"]))


def _rank(row: tuple[Group, GroupTotals]) -> tuple[object, ...]:
    (topic, topic_id, status, cause, *_), totals = row
    return status is not ObjectStatus.ORPHAN, -totals.bytes, topic, topic_id, status.value, cause.value if cause else ""


def _total_document(group: Group, totals: GroupTotals, cost: float | None) -> Document:
    topic, topic_id, status, cause, *_ = group
    return {
        "status": status.value,
        "cause": cause.value if cause else None,
        "topic": topic or None,
        "topicId": topic_id or None,
        "objects": totals.objects,
        "bytes": totals.bytes,
        "monthlyCost": cost,
        "oldest": None if totals.oldest_ms is None else iso_8601(totals.oldest_ms),
        "newest": None if totals.newest_ms is None else iso_8601(totals.newest_ms),
    }

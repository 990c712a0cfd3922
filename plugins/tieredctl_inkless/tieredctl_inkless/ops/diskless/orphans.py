"""Finds the objects of a bucket that nothing needs, asks for each once more before it is called orphaned, and
counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import OrphanedObjects
from tieredctl.model.findings import Finding
from tieredctl.model.ownership import DisklessCause, ObjectStatus
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.still_there import found_now
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ports.object_store import ObjectStore
from tieredctl_inkless.diskless.control_plane import KEYS_AT_ONCE, FoundStates
from tieredctl_inkless.ops.diskless.judgement import VERDICTS, JudgedBatch, JudgedObject, ObjectJudge, Rule

_LATE = TieredctlError(ErrorCode.CONTROL_PLANE_DOUBTFUL, "A standby answered instead of the primary, and may be late.")


class FileStates(Protocol):
    """A control plane, as far as orphans are concerned."""

    def states_of(self, object_keys: Sequence[str]) -> FoundStates:
        """As a ControlPlane's."""
        ...


class Judged:
    """Every object of a listing with its verdict, in that order, as they are read.

    Before one is called orphaned, the store and the control plane are asked for it once more: brokers go on uploading,
    committing and deleting.
    """

    def __init__(
        self, batches: Iterable[pa.RecordBatch], judge: ObjectJudge, control_plane: FileStates, store: ObjectStore
    ) -> None:
        """`batches` are objects by LISTING_SCHEMA."""
        self._batches, self._judge = batches, judge
        self._control_plane, self._store = control_plane, store
        self.gone = 0
        """How many were gone by the time that they were asked for again; they are left out."""
        self.doubt: TieredctlError | None = None
        """Why what looked orphaned is unknown after all."""

    def __iter__(self) -> Iterator[JudgedObject]:
        for batch in self._batches:
            judged = self._judge.judged(batch)
            for first in range(0, len(batch), KEYS_AT_ONCE):
                some = np.arange(first, min(first + KEYS_AT_ONCE, len(batch)))
                yield from self._asked_again(list(judged.objects(some)))

    def totals(self) -> OrphanTotals:
        """Counts all of them; only what looks orphaned becomes an object for that."""
        totals, waiting = OrphanTotals(), list[JudgedObject]()
        for batch in self._batches:
            judged = self._judge.judged(batch)
            totals.add_all_but_orphans(judged)
            for one in judged.objects(np.flatnonzero(judged.are_orphans)):
                waiting.append(one)
                if len(waiting) == KEYS_AT_ONCE:
                    totals.add_each(self._asked_again(waiting))
                    waiting = []
        totals.add_each(self._asked_again(waiting))
        return totals

    def orphans(self) -> Iterator[JudgedObject]:
        """The orphaned objects; only what looks orphaned becomes an object."""
        for batch in self._batches:
            judged = self._judge.judged(batch)
            rows = np.flatnonzero(judged.are_orphans)
            for first in range(0, len(rows), KEYS_AT_ONCE):
                some = self._asked_again(list(judged.objects(rows[first : first + KEYS_AT_ONCE])))
                yield from (one for one in some if one.status is ObjectStatus.ORPHAN)

    def _asked_again(self, objects: Sequence[JudgedObject]) -> Iterator[JudgedObject]:
        orphans = [one for one in objects if one.status is ObjectStatus.ORPHAN]
        if not orphans:
            yield from objects
            return
        keys = [one.stored.key for one in orphans]
        # The store first: a broker deletes the object before its row.
        there = {stored.key: stored for stored in found_now(self._store, keys)}
        committed = self._control_plane.states_of(keys)
        for one in orphans:
            now = there.get(one.stored.key)
            if now is None:
                continue
            if committed.states.get(one.stored.key) is not one.file_state:
                change = "it was committed meanwhile" if one.file_state is None else "its file was changed meanwhile"
                _reconsider(one, ObjectStatus.IN_PROGRESS, change)
            elif now.version != one.stored.version:
                _reconsider(one, ObjectStatus.IN_PROGRESS, "it was replaced meanwhile")
            elif committed.is_standby and not self._judge.by_standby:
                self.doubt = _LATE
                _reconsider(one, ObjectStatus.UNKNOWN, _LATE.message)
        lost = {*keys} - {*there}
        self.gone += len(lost)
        yield from (one for one in objects if one.stored.key not in lost)


def _reconsider(one: JudgedObject, status: ObjectStatus, why: str) -> None:
    one.status, one.cause, one.proof = status, None, {"why": why}


@dataclass(slots=True)
class OrphanTotals:
    """Objects and bytes by status and cause."""

    counts: dict[tuple[ObjectStatus, DisklessCause | None], list[int]] = field(default_factory=dict)
    """Objects, bytes, and the earliest and latest time in ms."""
    younger: tuple[int, int] = (0, 0)
    """Objects and bytes of what is too young to be orphaned."""

    def add(self, one: JudgedObject) -> None:
        modified_ms = one.stored.last_modified_ms
        self._add((one.status, one.cause), 1, one.stored.size, modified_ms, modified_ms)
        if one.is_young:
            self._add_young(1, one.stored.size)

    def add_each(self, objects: Iterable[JudgedObject]) -> None:
        for one in objects:
            self.add(one)

    def add_all_but_orphans(self, judged: JudgedBatch) -> None:
        """Counts the objects that need not be asked for again."""
        certain = ~judged.are_orphans
        for rule in np.unique(judged.rules[certain]).tolist():
            own = judged.rules == rule
            status, cause, _, is_young = VERDICTS[Rule(rule)]
            times = judged.modified_ms[own]
            size = int(judged.sizes[own].sum())
            self._add((status, cause), len(times), size, int(times.min()), int(times.max()))
            if is_young:
                self._add_young(len(times), size)

    def summary(self) -> Document:
        """By status, orphans by cause, and how much is not owned, but too young to be orphaned."""
        return {
            "objects": sum(count[0] for count in self.counts.values()),
            "bytes": sum(count[1] for count in self.counts.values()),
            "status": {
                status.value: self._sum([place for place in self.counts if place[0] is status])
                for status in ObjectStatus
            },
            "causes": {
                cause.value: self._sum([place for place in self.counts if place[1] is cause]) for cause in DisklessCause
            },
            "younger": {"objects": self.younger[0], "bytes": self.younger[1]},
        }

    def rows(self) -> Iterator[Document]:
        """A row for each status and cause, orphans first."""
        for (status, cause), (objects, size, oldest, newest) in sorted(
            self.counts.items(), key=lambda entry: (entry[0][0] is not ObjectStatus.ORPHAN, -entry[1][1])
        ):
            yield {
                "status": status.value,
                "cause": cause and cause.value,
                "objects": objects,
                "bytes": size,
                "oldest": iso_8601(oldest),
                "newest": iso_8601(newest),
            }

    def findings(self, subject: str) -> Iterator[Finding]:
        """One for each cause of orphans; `subject` is the store."""
        for cause in DisklessCause:
            totals = self._sum([(ObjectStatus.ORPHAN, cause)])
            if totals["objects"]:
                objects = counted(totals["objects"], "orphaned object")
                message = f"{objects}, {size_text(totals['bytes'])}: {cause.value}"
                evidence = {"cause": cause.value, **totals}
                yield Finding(
                    FindingCode.OBJECT_UNREFERENCED,
                    subject,
                    message,
                    evidence,
                    about=UnreferencedObjects(totals["objects"]),
                )

    def _add(
        self, place: tuple[ObjectStatus, DisklessCause | None], objects: int, size: int, oldest: int, newest: int
    ) -> None:
        count = self.counts.setdefault(place, [0, 0, oldest, newest])
        count[0] += objects
        count[1] += size
        count[2] = min(count[2], oldest)
        count[3] = max(count[3], newest)

    def _add_young(self, objects: int, size: int) -> None:
        self.younger = self.younger[0] + objects, self.younger[1] + size

    def _sum(self, places: Sequence[tuple[ObjectStatus, DisklessCause | None]]) -> Document:
        counts = [self.counts[place] for place in places if place in self.counts]
        return {"objects": sum(count[0] for count in counts), "bytes": sum(count[1] for count in counts)}


class JudgedScan(ABC):
    """A scan, done as its objects are read; counts and findings are complete after the last of them."""

    def __init__(self) -> None:
        self._totals = OrphanTotals()
        self._gone = 0
        self.findings: list[Finding] = []

    def documents(self) -> Iterator[Document]:
        """Every object, by key."""
        judged = self._judged()
        for one in judged:
            self._totals.add(one)
            yield one.document()
        self._finish(judged)

    def run(self) -> None:
        """Judges all objects."""
        judged = self._judged()
        self._totals = judged.totals()
        self._finish(judged)

    def totals(self) -> list[Document]:
        """A row for each status and cause."""
        return list(self._totals.rows())

    def summary(self) -> Document:
        """Objects and bytes by status, orphans by cause, what is too young, and whether nothing was left unknown."""
        incomplete = any(finding.kind.incomplete for finding in self.findings)
        return self._totals.summary() | self._besides() | {"gone": self._gone, "complete": not incomplete}

    def _besides(self) -> Document:
        """What the summary says more."""
        return {}

    @abstractmethod
    def _judged(self) -> Judged:
        """All objects, yet to be read."""

    @abstractmethod
    def _finish(self, judged: Judged) -> None:
        """Notes what is known once all were read."""


@dataclass(frozen=True, slots=True)
class UnreferencedObjects(OrphanedObjects):
    """Objects of a bucket that nothing needs."""

    @property
    def remedy(self) -> str:
        return "tieredctl diskless orphans scan …"

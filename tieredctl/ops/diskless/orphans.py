"""Which objects of a bucket no batch of the control plane needs, and why.

The bucket is listed first, and the control plane read afterwards: what was committed by then is known to it. Ages are
taken against the control plane's clock. What is not proven to be orphaned is not called so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tieredctl.diskless.control_plane import KEYS_AT_ONCE, ControlPlane, ControlPlaneTables, FileState
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import DisklessObjectSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_bytes
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.diskless.file_check import FileRows
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.still_there import found_now
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.storage.protocol import ObjectStore, StoredObject

_COMMITTED_WITHIN_MS = 600_000
"""How long after its upload an object may be committed, with what the store's clock differs from the database's."""


class DisklessCause(StrEnum):
    """How an object lost its owner."""

    NO_METADATA = "no-metadata"
    """No file of the control plane is this object: a broker died between upload and commit, or the commit failed."""
    DELETE_NEVER_FINISHED = "delete-never-finished"
    """Its file is marked for deletion, and brokers have not deleted it."""
    BATCHES_GONE = "batches-gone"
    """Its file is not marked for deletion, but none of its batches is left: no broker will ever delete it."""


@dataclass(slots=True)
class JudgedObject:
    """An object, and whose it is."""

    stored: StoredObject
    status: ObjectStatus
    cause: DisklessCause | None = None
    proof: Document = field(default_factory=dict)
    file_state: FileState | None = None
    """None where no file is this object."""

    def document(self) -> Document:
        return {
            "key": self.stored.key,
            "size": self.stored.size,
            "lastModified": iso_8601(self.stored.last_modified_ms),
            "storageClass": self.stored.storage_class,
            "status": self.status.value,
            "cause": self.cause and self.cause.value,
            "evidence": self.proof,
        }


class Judge:
    """Decides about one object at a time, by one moment of the control plane."""

    def __init__(self, tables: ControlPlaneTables, files: FileRows, min_age_ms: int) -> None:
        self.by_standby = tables.is_standby
        self._now_ms = tables.read_ms
        self._files, self._min_age_ms = files, min_age_ms
        self._numbers = {key: number for number, key in enumerate(files.keys)}
        self._folders = folders_of(files.keys)
        self._newest_commit_ms = int(files.committed_ms.max(initial=0))

    def judge(self, stored: StoredObject) -> JudgedObject:
        """The first rule that fits."""
        number = self._numbers.get(stored.key)
        return self._unknown_to_control_plane(stored) if number is None else self._of_file(stored, number)

    def _unknown_to_control_plane(self, stored: StoredObject) -> JudgedObject:
        age = self._now_ms - stored.last_modified_ms
        evidence: Document = {"file": None, "readAt": iso_8601(self._now_ms), "ageMs": age}
        if not _is_name(stored.key):
            return JudgedObject(stored, ObjectStatus.UNKNOWN, None, {"why": "brokers write no such keys"})
        if _folder(stored.key) not in self._folders:
            why = "the control plane has no file in this folder: another cluster may own it"
            return JudgedObject(stored, ObjectStatus.FOREIGN, None, {"why": why})
        if len(self._files.strays):
            why = "the control plane lost files that have batches: this object may be one of them"
            return JudgedObject(stored, ObjectStatus.UNKNOWN, None, {"why": why})
        if age < self._min_age_ms:
            return JudgedObject(stored, ObjectStatus.IN_PROGRESS, None, evidence)
        evidence["newestCommitAt"] = iso_8601(self._newest_commit_ms)
        if stored.last_modified_ms > self._newest_commit_ms - _COMMITTED_WITHIN_MS:
            # A restored copy or a late replica looks like this: all that was committed since is unknown to it.
            why = "the control plane has no commit from after its upload: it may be a copy that lacks its file"
            return JudgedObject(stored, ObjectStatus.UNKNOWN, None, {**evidence, "why": why})
        return JudgedObject(stored, ObjectStatus.ORPHAN, DisklessCause.NO_METADATA, evidence)

    def _of_file(self, stored: StoredObject, number: int) -> JudgedObject:
        files = self._files
        state, batches = FileState(int(files.states[number])), int(files.batch_counts[number])
        marked_ms, committed_ms = int(files.marked_ms[number]), int(files.committed_ms[number])
        evidence: Document = {
            "file": int(files.ids[number]),
            "fileState": state.name.lower(),
            "batchCount": batches,
            "committedAt": iso_8601(committed_ms),
            "markedForDeletionAt": None if marked_ms < 0 else iso_8601(marked_ms),
        }
        if batches:
            return JudgedObject(stored, ObjectStatus.OWNED, None, evidence, state)
        if state is FileState.UNKNOWN:
            return JudgedObject(stored, ObjectStatus.UNKNOWN, None, evidence, state)
        # A file that is deleting without a mark, or marked without being deleted, is as old as its commit.
        is_deleting = state is FileState.DELETING
        since = marked_ms if is_deleting and marked_ms >= 0 else committed_ms
        if self._now_ms - max(since, stored.last_modified_ms) < self._min_age_ms:
            return JudgedObject(stored, ObjectStatus.IN_PROGRESS, None, evidence, state)
        cause = DisklessCause.DELETE_NEVER_FINISHED if is_deleting else DisklessCause.BATCHES_GONE
        return JudgedObject(stored, ObjectStatus.ORPHAN, cause, evidence, state)


class Judged:
    """Every object of a listing with its verdict, in that order, as they are read.

    Before one is called orphaned, the store and the control plane are asked for it once more: brokers go on uploading,
    committing and deleting.
    """

    def __init__(
        self, listed: Iterable[StoredObject], judge: Judge, control_plane: ControlPlane, store: ObjectStore
    ) -> None:
        self._listed, self._judge = listed, judge
        self._control_plane, self._store = control_plane, store
        self.gone = 0
        """How many were gone by the time that they were asked for again; they are left out."""

    def __iter__(self) -> Iterator[JudgedObject]:
        waiting: list[JudgedObject] = []
        for stored in self._listed:
            waiting.append(self._judge.judge(stored))
            if len(waiting) == KEYS_AT_ONCE:
                yield from self._asked_again(waiting)
                waiting = []
        yield from self._asked_again(waiting)

    def _asked_again(self, objects: Sequence[JudgedObject]) -> Iterator[JudgedObject]:
        orphans = [one for one in objects if one.status is ObjectStatus.ORPHAN]
        if not orphans:
            yield from objects
            return
        keys = [one.stored.key for one in orphans]
        # The store first: a broker deletes the object before its row.
        there = {stored.key: stored for stored in found_now(self._store, keys)}
        known = self._control_plane.states_of(keys)
        for one in orphans:
            now = there.get(one.stored.key)
            if now is None:
                continue
            if known.states.get(one.stored.key) is not one.file_state:
                change = "it was committed meanwhile" if one.file_state is None else "its file was changed meanwhile"
                _reconsider(one, ObjectStatus.IN_PROGRESS, change)
            elif now.version != one.stored.version:
                _reconsider(one, ObjectStatus.IN_PROGRESS, "it was replaced meanwhile")
            elif known.is_standby and not self._judge.by_standby:
                _reconsider(one, ObjectStatus.UNKNOWN, "a standby answered instead of the primary, and may be late")
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

    def add(self, one: JudgedObject) -> None:
        modified_ms = one.stored.last_modified_ms
        count = self.counts.setdefault((one.status, one.cause), [0, 0, modified_ms, modified_ms])
        count[0] += 1
        count[1] += one.stored.size
        count[2] = min(count[2], modified_ms)
        count[3] = max(count[3], modified_ms)

    def summary(self) -> Document:
        """By status, and orphans by cause."""
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
                message = f"{counted(totals['objects'], 'orphaned object')}, {totals['bytes']} bytes: {cause.value}"
                evidence = {"cause": cause.value, **totals}
                yield Finding(
                    FindingCode.OBJECT_UNREFERENCED, subject, message, evidence, about=UnreferencedObjects(subject)
                )

    def _sum(self, places: Sequence[tuple[ObjectStatus, DisklessCause | None]]) -> Document:
        found = [self.counts[place] for place in places if place in self.counts]
        return {"objects": sum(count[0] for count in found), "bytes": sum(count[1] for count in found)}


class UnreferencedObjects(DisklessObjectSubject):
    """Objects of a bucket that nothing needs."""

    __slots__ = ()

    @property
    def remedy(self) -> str:
        return "tieredctl diskless orphans scan …"


def folders_of(keys: Iterable[str]) -> set[str]:
    """Where the brokers of a control plane write, by the keys of its files."""
    return {_folder(key) for key in keys}


def may_be_an_upload(key: str, folders: set[str]) -> bool:
    """Whether brokers that write into these folders write such keys. Another key is not theirs."""
    return _folder(key) in folders and _is_name(key)


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def _is_name(key: str) -> bool:
    """Whether a key ends as those that brokers write do: in the text of a random id."""
    try:
        uuid_bytes(key.rpartition("/")[2])
    except ValueError:
        return False
    return True

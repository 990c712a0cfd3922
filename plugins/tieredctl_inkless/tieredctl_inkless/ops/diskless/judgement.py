"""Judges which file owns each object of a bucket, by the first rule that fits: for many objects at once.

The bucket is listed first, and the control plane read afterwards: what was committed by then is known to it. Ages are
taken against the control plane's clock. What is not proven to be orphaned is not called so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.ownership import DisklessCause, ObjectStatus
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.remote.listing import record_batch, stored_objects
from tieredctl.ports.object_store import StoredObject
from tieredctl_inkless.diskless.control_plane import FileState
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE
from tieredctl_inkless.ops.diskless.moment import Moment

COMMITTED_WITHIN_MS = 600_000
"""How long after its upload an object may be committed, with what the store's clock differs from the database's."""


class Rule(IntEnum):
    """What decides about an object, in this order: first of objects with a file, then of others. The last four are of
    coordinators' logs alone."""

    HAS_BATCHES = auto()
    STATE_UNKNOWN = auto()
    FILE_DOUBTFUL = auto()
    FILE_YOUNG = auto()
    DELETE_NEVER_FINISHED = auto()
    BATCHES_GONE = auto()
    OTHER_NAME = auto()
    DOUBTFUL = auto()
    OTHER_FOLDER = auto()
    UPLOAD_YOUNG = auto()
    NO_LATER_COMMIT = auto()
    OLDER_THAN_SCHEMA = auto()
    NO_METADATA = auto()
    OWNERS_DELETE = auto()
    LOGS_INCOMPLETE = auto()
    AFTER_THRESHOLD = auto()
    OLDER_THAN_LOGS = auto()


class Verdict(NamedTuple):
    """What a rule says of an object."""

    status: ObjectStatus
    cause: DisklessCause | None = None
    why: str | None = None
    is_young: bool = False
    """Whether it is too young to be orphaned, and that alone."""


_YOUNG = Verdict(ObjectStatus.IN_PROGRESS, is_young=True)
VERDICTS: Mapping[Rule, Verdict] = {
    Rule.HAS_BATCHES: Verdict(ObjectStatus.OWNED),
    Rule.STATE_UNKNOWN: Verdict(ObjectStatus.UNKNOWN),
    Rule.FILE_DOUBTFUL: Verdict(ObjectStatus.UNKNOWN, None, "nothing is known to be orphaned by this control plane"),
    Rule.FILE_YOUNG: _YOUNG,
    Rule.DELETE_NEVER_FINISHED: Verdict(ObjectStatus.ORPHAN, DisklessCause.DELETE_NEVER_FINISHED),
    Rule.BATCHES_GONE: Verdict(ObjectStatus.ORPHAN, DisklessCause.BATCHES_GONE),
    Rule.OTHER_NAME: Verdict(ObjectStatus.UNKNOWN, None, "brokers write no such keys"),
    Rule.OTHER_FOLDER: Verdict(
        ObjectStatus.FOREIGN, None, "the control plane has no file in this folder: another cluster may own it"
    ),
    Rule.DOUBTFUL: Verdict(
        ObjectStatus.UNKNOWN, None, "the control plane may have lost its file, or never had it: it is not to be trusted"
    ),
    Rule.UPLOAD_YOUNG: _YOUNG,
    # A restored copy or a late replica looks like this: all that was committed since is unknown to it.
    Rule.NO_LATER_COMMIT: Verdict(
        ObjectStatus.UNKNOWN,
        None,
        "the control plane has no commit that is surely from after its upload: it may be a copy that lacks its file",
    ),
    Rule.OLDER_THAN_SCHEMA: Verdict(
        ObjectStatus.UNKNOWN,
        None,
        "it may be older than the control plane's schema: one that was lost may have had its file",
    ),
    Rule.NO_METADATA: Verdict(ObjectStatus.ORPHAN, DisklessCause.NO_METADATA),
    Rule.OWNERS_DELETE: Verdict(
        ObjectStatus.IN_PROGRESS, None, "no coordinator has live batches in it: the last of its owners deletes it"
    ),
    Rule.LOGS_INCOMPLETE: Verdict(
        ObjectStatus.UNKNOWN, None, "a coordinator's log is missing or not whole: it may know this object"
    ),
    Rule.AFTER_THRESHOLD: _YOUNG,
    Rule.OLDER_THAN_LOGS: Verdict(
        ObjectStatus.UNKNOWN, None, "it may be older than a coordinator's log: one that was lost may have had its file"
    ),
}
_AT_ONCE = 1_000
_OF_ORPHANS = [rule for rule, verdict in VERDICTS.items() if verdict.status is ObjectStatus.ORPHAN]


@dataclass(slots=True)
class JudgedObject:
    """An object, and whose it is."""

    stored: StoredObject
    status: ObjectStatus
    cause: DisklessCause | None = None
    proof: Document = field(default_factory=dict)
    file_state: FileState | None = None
    """None where no file is this object."""
    is_young: bool = False
    """Whether it is too young to be orphaned."""

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


class ObjectJudge(Protocol):
    """Decides about objects by what it knows of their files."""

    by_standby: bool
    """Whether that may be late."""

    def judged(self, objects: pa.RecordBatch) -> JudgedBatch:
        """Objects by LISTING_SCHEMA, none of whose keys is null."""
        ...

    def proof(self, rule: Rule, stored: StoredObject, number: int) -> Document:
        """What decided about an object; `number` is its file's, or NO_FILE."""
        ...

    def file_state(self, number: int) -> FileState | None:
        """None where no file is meant."""
        ...


class Judge:
    """Decides about objects, by one moment of the control plane."""

    def __init__(self, moment: Moment, min_age_ms: int) -> None:
        self.by_standby = moment.is_standby
        self._now_ms = moment.read_ms
        self._moment, self._files, self._min_age_ms = moment, moment.files, min_age_ms
        self._newest_commit_ms = moment.newest_commit_ms
        # Brokers date commits by their own clocks: one that is ahead tells nothing of when the last one was.
        is_ahead = moment.newest_commit_ms > moment.read_ms + MOST_SKEW_MS
        self._committed_until_ms = 0 if is_ahead else moment.newest_commit_ms

    def judge(self, stored: StoredObject) -> JudgedObject:
        """One object."""
        (judged,) = self.judged(record_batch([stored])).objects(np.arange(1))
        return judged

    def judged(self, objects: pa.RecordBatch) -> JudgedBatch:
        """Objects by LISTING_SCHEMA, none of whose keys is null."""
        keys, modified_ms = objects.column("key"), numbers_in(objects.column("lastModifiedMs")).astype(np.int64)
        numbers = self._files.keys.numbers_of(keys)
        has_file = numbers != NO_FILE
        rules = np.zeros(len(objects), np.int64)
        rules[has_file] = self._rules_of_files(numbers[has_file], modified_ms[has_file])
        others = pa.array(np.flatnonzero(~has_file))
        rules[~has_file] = self._rules_of_others(keys.take(others), modified_ms[~has_file])
        return JudgedBatch(objects, rules, numbers, self)

    def proof(self, rule: Rule, stored: StoredObject, number: int) -> Document:
        """What of the control plane decided about an object."""
        why = VERDICTS[rule].why
        if rule in (Rule.FILE_DOUBTFUL, Rule.DOUBTFUL):
            return {"why": why, "doubt": self._moment.doubt}
        if rule in (Rule.OTHER_NAME, Rule.OTHER_FOLDER):
            return {"why": why}
        if number != NO_FILE:
            return self._file_document(number)
        age_ms = self._now_ms - stored.last_modified_ms
        proof: Document = {"file": None, "readAt": iso_8601(self._now_ms), "ageMs": age_ms}
        if rule is not Rule.UPLOAD_YOUNG:
            proof["newestCommitAt"] = iso_8601(self._newest_commit_ms)
        return proof if why is None else {**proof, "why": why}

    def file_state(self, number: int) -> FileState | None:
        """None where no file is meant."""
        return None if number == NO_FILE else FileState(int(self._files.states[number]))

    def _file_document(self, number: int) -> Document:
        files = self._files
        marked_ms = int(files.marked_ms[number])
        return {
            "file": int(files.ids[number]),
            "fileState": FileState(int(files.states[number])).name.lower(),
            "batchCount": len(files.batches_of(number)),
            "committedAt": iso_8601(int(files.committed_ms[number])),
            "markedForDeletionAt": None if marked_ms < 0 else iso_8601(marked_ms),
        }

    def _rules_of_files(self, numbers: Ints, modified_ms: Ints) -> Ints:
        files = self._files
        states, marked_ms = files.states[numbers], files.marked_ms[numbers]
        is_deleting = states == FileState.DELETING
        # A file that is deleting without a mark, or marked without being deleted, is as old as its commit.
        since_ms = np.where(is_deleting & (marked_ms >= 0), marked_ms, files.committed_ms[numbers])
        age_ms = self._now_ms - np.maximum(since_ms, modified_ms)
        return first_that_fits(
            len(numbers),
            {
                Rule.HAS_BATCHES: files.batch_counts[numbers] > 0,
                Rule.STATE_UNKNOWN: states == FileState.UNKNOWN,
                Rule.FILE_DOUBTFUL: np.full(len(numbers), self._moment.doubt is not None),
                Rule.FILE_YOUNG: age_ms < self._min_age_ms,
                Rule.DELETE_NEVER_FINISHED: is_deleting,
            },
            Rule.BATCHES_GONE,
        )

    def _rules_of_others(self, keys: pa.BinaryArray, modified_ms: Ints) -> Ints:
        named, are_uploads = self._moment.all_keys.are_uploads(keys)
        return first_that_fits(
            len(keys),
            {
                Rule.OTHER_NAME: ~named,
                Rule.DOUBTFUL: np.full(len(keys), self._moment.doubt is not None),
                Rule.OTHER_FOLDER: ~are_uploads,
                Rule.UPLOAD_YOUNG: self._now_ms - modified_ms < self._min_age_ms,
                Rule.NO_LATER_COMMIT: modified_ms > self._committed_until_ms - COMMITTED_WITHIN_MS,
                Rule.OLDER_THAN_SCHEMA: modified_ms < self._moment.made_ms + MOST_SKEW_MS,
            },
            Rule.NO_METADATA,
        )


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """Objects of a listing, and the rule that decided about each."""

    listed: pa.RecordBatch
    """The listed objects, by LISTING_SCHEMA."""
    rules: Ints
    numbers: Ints
    """The number of each one's file, or NO_FILE."""
    judge: ObjectJudge

    @property
    def are_orphans(self) -> Flags:
        """Flags the objects that look orphaned, before anything is asked again."""
        orphans: Flags = np.isin(self.rules, _OF_ORPHANS)
        return orphans

    @property
    def sizes(self) -> Ints:
        """In bytes."""
        sizes: Ints = numbers_in(self.listed.column("size"))
        return sizes

    @property
    def modified_ms(self) -> Ints:
        """In ms since the epoch, by the store's clock."""
        times: Ints = numbers_in(self.listed.column("lastModifiedMs"))
        return times

    def objects(self, rows: Ints) -> Iterator[JudgedObject]:
        """Some of them, each with its evidence."""
        for first in range(0, len(rows), _AT_ONCE):
            some = rows[first : first + _AT_ONCE]
            objects = stored_objects(self.listed.take(number_array(some)))
            for stored, own, number in zip(
                objects, self.rules[some].tolist(), self.numbers[some].tolist(), strict=True
            ):
                rule = Rule(own)
                status, cause, _, is_young = VERDICTS[rule]
                proof = self.judge.proof(rule, stored, number)
                yield JudgedObject(stored, status, cause, proof, self.judge.file_state(number), is_young)


def first_that_fits(count: int, rules: Mapping[Rule, Flags], otherwise: Rule) -> Ints:
    """The first rule that fits each of so many objects."""
    first_rules = np.full(count, otherwise, np.int64)
    for rule, fits in [*rules.items()][::-1]:
        first_rules[fits] = rule
    return first_rules

"""Whose is an object? The rules in their order; the first that fits decides.

1. No layout explains the key, or what metadata says of the segment contradicts it: unknown.
2. Its topic id was never known: foreign.
3. A broker may read its segment: owned. This covers a copy that another displaced, which is Kafka's to delete.
4. It is younger than the age floor: in progress.
5. Metadata never named its segment: in progress if the object is newer than all that was read, else an orphan, if the
   metadata is whole.
6. Otherwise the segment's last state tells. A copy that began and did not end may still end, unless another of the same
   offsets began later, or its topic is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState as State
from tieredctl.model.ownership import ObjectStatus, OrphanCause
from tieredctl.ops.orphans.object_columns import ObjectColumns
from tieredctl.ops.orphans.segment_states import NO_STATE, SegmentStates

NO_SEGMENT = -1
_STATUSES = tuple(ObjectStatus)
_CAUSES = (None, *OrphanCause)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A verdict for each object, and which row of the segments it was judged by (NO_SEGMENT: none)."""

    codes: NDArray[np.int8]
    """What `verdict_of` takes."""
    segments: Ints


def verdict_of(code: int) -> tuple[ObjectStatus, OrphanCause | None]:
    """A verdict by its number."""
    return _STATUSES[code // len(_CAUSES)], _CAUSES[code % len(_CAUSES)]


@dataclass(frozen=True, slots=True)
class Judge:
    """What objects are held against. Times in ms; `live_topic_ids` None where it is not known which topics there are;
    `metadata_is_whole` says that no event is missing."""

    segments: SegmentStates
    now_ms: int
    min_age_ms: int
    live_topic_ids: frozenset[str] | None
    metadata_is_whole: bool

    def judge(self, objects: ObjectColumns) -> Verdicts:
        """The verdicts on a listing's objects."""
        segments = self.segments
        rows = _rows_of(objects, segments)
        named = rows != NO_SEGMENT
        states = np.where(named, segments.states[rows], np.int8(NO_STATE)) if len(segments.states) else _none(rows)
        gone, removed = self._gone_topics(objects.partitions), self._removed_partitions(objects.partitions)
        unfinished = states == State.COPY_SEGMENT_STARTED
        superseded = segments.superseded[rows] if len(segments.states) else np.zeros(len(rows), np.bool_)
        contradicted = named & ((states == NO_STATE) | ~self._agree(objects, rows))
        finished = states == State.COPY_SEGMENT_FINISHED
        young = objects.last_modified_ms > self.now_ms - self.min_age_ms
        unread = objects.last_modified_ms > segments.last_timestamp_ms
        decided = _Decision(len(rows))
        decided.status(~objects.is_explained, ObjectStatus.UNKNOWN)
        decided.status(~objects.known_topic, ObjectStatus.FOREIGN)
        decided.status(contradicted, ObjectStatus.UNKNOWN)
        decided.status(finished & ~gone & ~removed, ObjectStatus.OWNED)
        decided.status(young, ObjectStatus.IN_PROGRESS)
        decided.status(~named & unread, ObjectStatus.IN_PROGRESS)
        if not self.metadata_is_whole:
            decided.status(~named, ObjectStatus.UNKNOWN)
        decided.orphan(~named, OrphanCause.NO_METADATA)
        decided.orphan(finished & gone, OrphanCause.TOPIC_GONE)
        decided.orphan(finished & removed, OrphanCause.PARTITION_GONE)
        decided.orphan(states == State.DELETE_SEGMENT_STARTED, OrphanCause.DELETE_NEVER_FINISHED)
        decided.orphan(states == State.DELETE_SEGMENT_FINISHED, OrphanCause.DELETED_BUT_PRESENT)
        decided.orphan(unfinished & (superseded | gone), OrphanCause.COPY_NEVER_FINISHED)
        decided.status(unfinished, ObjectStatus.IN_PROGRESS)
        return decided.verdicts(rows)

    def is_live(self, topic_id: str) -> bool | None:
        """Whether a topic is there; None where that is not known."""
        return None if self.live_topic_ids is None else topic_id in self.live_topic_ids

    def _agree(self, objects: ObjectColumns, rows: Ints) -> Flags:
        """Whether keys are of the partition and the offset that the metadata gives to their segments."""
        if not len(self.segments.states):
            return np.ones(len(rows), np.bool_)
        agree: Flags = (objects.partitions == self.segments.owners[rows]) & (
            objects.said.start_offsets == self.segments.start_offsets[rows]
        )
        return agree

    def _gone_topics(self, partitions: Ints) -> Flags:
        gone = [self.is_live(partition.topic_id) is False for partition in self.segments.partitions]
        return np.array([*gone, False], np.bool_)[partitions]

    def _removed_partitions(self, partitions: Ints) -> Flags:
        removed = [number in self.segments.partition_deletes for number in range(len(self.segments.partitions))]
        return np.array([*removed, False], np.bool_)[partitions]


class _Decision:
    """The first rule that fits a row decides it."""

    def __init__(self, rows: int) -> None:
        self._open = np.ones(rows, np.bool_)
        self._statuses = np.full(rows, _STATUSES.index(ObjectStatus.UNKNOWN), np.int8)
        self._causes = np.zeros(rows, np.int8)

    def status(self, which: Flags, status: ObjectStatus) -> None:
        which = which & self._open
        self._statuses[which] = _STATUSES.index(status)
        self._open &= ~which

    def orphan(self, which: Flags, cause: OrphanCause) -> None:
        self._causes[which & self._open] = _CAUSES.index(cause)
        self.status(which, ObjectStatus.ORPHAN)

    def verdicts(self, segments: Ints) -> Verdicts:
        return Verdicts(self._statuses * np.int8(len(_CAUSES)) + self._causes, segments)


def _rows_of(objects: ObjectColumns, segments: SegmentStates) -> Ints:
    found: Any = pc.index_in(objects.segment_ids(), segments.ids)
    rows = numbers_in(pc.fill_null(found, NO_SEGMENT)).astype(np.int64)
    return np.where(objects.is_explained, rows, NO_SEGMENT)


def _none(rows: Ints) -> NDArray[np.int8]:
    return np.full(len(rows), NO_STATE, np.int8)

"""What `recover indexes` would write for a segment, and what it cannot rebuild."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.healing.examination import Condition
from tieredctl.ops.healing.index_diagnosis import (
    FoundPart,
    IndexDiagnosis,
    diagnose,
    with_earlier_transactions,
)
from tieredctl.ops.healing.index_rebuilding import NOTHING_REBUILT, earlier_producers, rebuilt_parts
from tieredctl.ops.healing.known_segments import KnownSegmentOfPartition
from tieredctl.ops.remote.part_finding import key_holding
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import ObjectStore, StoredObject

_NOT_IN_THE_LOG = "a segment's log does not have the leader epochs before it"
_NEVER_LOOKED_AT = (
    "the metadata says that the segment has no aborted transaction (txnIdxEmpty): brokers would never fetch the index"
)
_MOST_LOOKS = 3
_MAY_BE_ALTERED = (ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE, ErrorCode.UNREADABLE, ErrorCode.WORLD_CHANGED)
"""How planning fails where an answer contradicts an earlier one."""


class Action(StrEnum):
    """What to do about a part."""

    NONE = "none"
    PUT = "put"
    """It is missing: an object is written."""
    REPLACE = "replace"
    """It is damaged: its object is copied to quarantine, then replaced."""
    IMPOSSIBLE = "impossible"
    """It is missing or damaged, and cannot be rebuilt or cannot be written."""


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part, what to do about it, and the bytes to write. Sizes are of the part as a broker writes it."""

    found: FoundPart
    action: Action
    key: str | None = None
    """The key of the object that holds it, or would."""
    stored: StoredObject | None = None
    rebuilt: bytes | None = None
    obstacle: str | None = None

    def document(self) -> Document:
        """A row, without the bytes."""
        return {
            "part": self.found.part.value,
            "condition": self.found.condition.value,
            "action": self.action.value,
            "bytes": self.found.size,
            "rebuiltBytes": None if self.rebuilt is None else len(self.rebuilt),
            "key": self.key,
            "reason": self.found.reason,
            "obstacle": self.obstacle,
        }


@dataclass(frozen=True, slots=True)
class IndexRecoveryPlan:
    """A segment, and what to do about each of its parts."""

    metadata: RemoteLogSegmentMetadata
    log: StoredObject | None
    log_damage: str | None
    parts: Sequence[PlannedPart]

    def to_write(self) -> list[PlannedPart]:
        """The parts whose object is to be written or replaced."""
        return [part for part in self.parts if part.action in (Action.PUT, Action.REPLACE)]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is missing or damaged."""
        return self.log_damage is None and all(one.action is Action.NONE for one in self.parts)

    @property
    def rebuilt_snapshot(self) -> bytes | None:
        """The producer snapshot that is to be written, if one is."""
        snapshots = (one.rebuilt for one in self.to_write() if one.found.part is Part.PRODUCER_SNAPSHOT)
        return next(snapshots, None)

    @property
    def rebuilt_bytes(self) -> int:
        """How much it holds in memory."""
        return sum(len(one.rebuilt or b"") for one in self.parts)

    def impossible(self) -> list[PlannedPart]:
        """The parts that stay as they are although they are not sound."""
        return [part for part in self.parts if part.action is Action.IMPOSSIBLE]

    def summary(self) -> Document:
        """The segment, and how many parts are in which condition."""
        conditions = [part.found.condition for part in self.parts]
        return {
            **partition_document(self.metadata.topic_id_partition),
            "segmentId": self.metadata.segment_id,
            "startOffset": self.metadata.start_offset,
            "endOffset": self.metadata.end_offset,
            "logDamage": self.log_damage,
            **{condition.value: conditions.count(condition) for condition in Condition},
            "toWrite": len(self.to_write()),
            "impossible": len(self.impossible()),
        }


def plan_index_recovery(
    segment: KnownSegmentOfPartition,
    store: ObjectStore,
    layout: Layout,
    index_interval_bytes: int,
    rebuilt_before: Mapping[str, bytes] = NOTHING_REBUILT,
) -> IndexRecoveryPlan:
    """Reads the whole segment, then its log once more. Changes nothing.

    What does not look sound is looked at again over new connections, since bytes may be altered on the way: it is what
    two looks in a row found, or else the last of three.

    `rebuilt_before` has producer snapshots of other segments that are rebuilt too, by segment id. Raises TieredctlError
    where the store does not answer, or what is in it changes meanwhile.
    """
    before: IndexRecoveryPlan | None = None
    for _ in range(1, _MOST_LOOKS):
        try:
            plan = _planned_once(segment, store, layout, index_interval_bytes, rebuilt_before)
        except TieredctlError as error:
            if error.code not in _MAY_BE_ALTERED:
                raise
        else:
            if plan.is_sound or plan == before:
                return plan
            before = plan
        store = store.reconnected()
    return _planned_once(segment, store, layout, index_interval_bytes, rebuilt_before)


def _planned_once(
    segment: KnownSegmentOfPartition,
    store: ObjectStore,
    layout: Layout,
    index_interval_bytes: int,
    rebuilt_before: Mapping[str, bytes],
) -> IndexRecoveryPlan:
    metadata = segment.metadata
    diagnosis = diagnose(metadata, store, layout, index_interval_bytes)
    if diagnosis.log_damage is not None:
        parts = _planned(diagnosis, {}, f"the log itself is not sound: {diagnosis.log_damage}", metadata, layout)
        return IndexRecoveryPlan(metadata, diagnosis.stored.get(Part.LOG), diagnosis.log_damage, parts)
    before = earlier_producers(metadata, segment.cache, store, layout, rebuilt_before)
    rebuilt = rebuilt_parts(metadata, store, layout, index_interval_bytes, before.entries)
    diagnosis = with_earlier_transactions(diagnosis, rebuilt, layout.open_segment(store, metadata))
    unknown = f"the producers as of the segment's first offset are unknown: {before.unknown_because}"
    parts = _planned(diagnosis, rebuilt, unknown, metadata, layout)
    return IndexRecoveryPlan(metadata, diagnosis.stored.get(Part.LOG), None, parts)


def _planned(
    diagnosis: IndexDiagnosis,
    rebuilt: Mapping[Part, bytes],
    why_not_rebuilt: str,
    metadata: RemoteLogSegmentMetadata,
    layout: Layout,
) -> list[PlannedPart]:
    keys = possible_objects(layout, metadata)
    planned = []
    for part in diagnosis.parts:
        data = rebuilt.get(part.part)
        key, stored = key_holding(part.part, keys), diagnosis.stored.get(part.part)
        action, obstacle = Action.REPLACE if stored else Action.PUT, None
        if part.condition is Condition.SOUND:
            action, data = Action.NONE, None
        elif data is None:
            action = Action.IMPOSSIBLE
            obstacle = _NOT_IN_THE_LOG if part.part is Part.LEADER_EPOCH else why_not_rebuilt
        elif part.part not in layout.verbatim_parts:
            action, obstacle = Action.IMPOSSIBLE, f"recover indexes cannot write the layout {layout.name} yet"
        elif part.part is Part.TRANSACTION_INDEX and metadata.txn_idx_empty and data:
            action, obstacle = Action.IMPOSSIBLE, _NEVER_LOOKED_AT
        planned.append(PlannedPart(part, action, key, stored, data, obstacle))
    return planned

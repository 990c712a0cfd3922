"""What `recover indexes` would write for a segment, and what it cannot rebuild."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.index_recovery.index_diagnosis import (
    Condition,
    FoundPart,
    IndexDiagnosis,
    diagnose,
    with_earlier_transactions,
)
from tieredctl.ops.index_recovery.index_rebuilding import NOTHING_REBUILT, earlier_producers, rebuilt_parts
from tieredctl.ops.metadata.completeness import demand_whole, demand_whole_since_it_begins
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, segments
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_CHECK = "See what else is known of it with `tieredctl verify --segment-id …`."
_NOT_IN_THE_LOG = "a segment's log does not have the leader epochs before it"
_NEVER_LOOKED_AT = (
    "the metadata says that the segment has no aborted transaction (txnIdxEmpty): brokers would never fetch the index"
)


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


@dataclass(frozen=True, slots=True)
class KnownSegmentOfPartition:
    """A segment in COPY_SEGMENT_FINISHED, and all that the metadata knows of its partition."""

    metadata: RemoteLogSegmentMetadata
    cache: RemoteLogMetadataCache


@dataclass(slots=True)
class SegmentsOnce:
    """The segments after one reading of the metadata, by which any number of them is asked for."""

    findings: Sequence[Finding]
    """About the metadata. A lost beginning forbids nothing here: the events of a segment that is known are all there,
    and its indexes are made of its own log."""
    _state: ReplayedMetadata
    _caches: dict[TopicIdPartition, RemoteLogMetadataCache] = field(default_factory=dict)

    @classmethod
    def of(cls, stream: EventStream) -> SegmentsOnce:
        """Reads a stream to its end. Raises TieredctlError `metadata-incomplete` where some of it cannot be read."""
        state = replayed(stream)
        demand_whole_since_it_begins(stream.findings)
        return cls(stream.findings, state)

    def ids(self, selection: Selection) -> list[str]:
        """The segments in COPY_SEGMENT_FINISHED that are selected, in the order in which one's producers are needed for
        the next: by partition, then offset. Raises TieredctlError as `Selection.demand_known` does."""
        if not any(map(selection.has, self._state.partitions)):
            demand_whole(self.findings)
        selection.demand_known(self._state.partitions, "The metadata has no event of")
        rows = segments(self._state, selection, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
        return [segment.metadata.segment_id for _, segment in self._state.known(rows)]

    def in_order(self, segment_ids: Collection[str]) -> list[str]:
        """These segments, once each, in that order; then those that are not among the segments in it."""
        wanted = {*segment_ids}
        ordered = [one for one in self.ids(Selection()) if one in wanted]
        return [*ordered, *sorted(wanted - {*ordered})]

    def finished(self, segment_id: str) -> KnownSegmentOfPartition:
        """A segment whose objects are promised. Raises TieredctlError: `unknown-segment`; `metadata-incomplete` where
        it may be in what was lost, and where its log's size is unknown; `usage` where it is still copied, or being
        deleted."""
        row = next(self._state.known(segments(self._state, Selection.of(segment_id=segment_id))), None)
        if row is None:
            demand_whole(self.findings)
            message = f"The metadata has no segment {segment_id}, or it was deleted."
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, message)
        partition, segment = row
        if segment.metadata.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            message = f"Segment {segment_id} is in {segment.metadata.state.name}: its objects are not promised."
            hint = "Only indexes of segments in COPY_SEGMENT_FINISHED are rebuilt."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if segment.metadata.known_size is None:
            message = f"The metadata gives segment {segment_id} {segment.metadata.segment_size_in_bytes} bytes"
            why = "whether its log is whole is unknown, and nothing is rebuilt from it"
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, f"{message}: {why}.", hint=_CHECK)
        if partition not in self._caches:
            self._caches = {partition: self._state.caches[partition]}
        return KnownSegmentOfPartition(segment.metadata, self._caches[partition])


def plan_index_recovery(
    segment: KnownSegmentOfPartition,
    store: ObjectStore,
    layout: Layout,
    index_interval_bytes: int,
    rebuilt_before: Mapping[str, bytes] = NOTHING_REBUILT,
) -> IndexRecoveryPlan:
    """Reads the whole segment, then its log once more. Changes nothing.

    `rebuilt_before` has producer snapshots of other segments that are rebuilt too, by segment id. Raises TieredctlError
    where the store does not answer, or what is in it changes meanwhile.
    """
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
    keys = layout.promised_objects(metadata) | layout.optional_objects(metadata)
    planned = []
    for part in diagnosis.parts:
        data = rebuilt.get(part.part)
        key, stored = keys.get(part.part, keys.get(Part.INDEXES)), diagnosis.stored.get(part.part)
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

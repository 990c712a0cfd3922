"""Writes a segment's lost objects: what was shown, once it is found and proven again, and looked at afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.healing.examination import examine
from tieredctl.ops.healing.healing_plan import Healer, HealingPlan, PlannedObject
from tieredctl.ops.healing.known_segments import KnownSegmentOfPartition
from tieredctl.ops.healing.object_writing import (
    FreshSegments,
    Quarantining,
    put_or_replace,
)
from tieredctl.ops.healing.segments_in_turn import write_in_turn
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.process.interruption import critical_section, mark_complete


@dataclass(slots=True, kw_only=True)
class HealedSegment(Outcome):
    """How much of the plan for one segment was applied."""

    plan: HealingPlan
    written: list[Part] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """The keys of what was written, or may have been: the answer may be lost."""
    quarantined: dict[Part, str] = field(default_factory=dict)
    """The keys of the copies of what was replaced."""
    is_healed: bool = False
    """Whether, looked at again, every object that was written is sound, and the metadata still promises the segment."""
    accepted: list[Part] = field(default_factory=list)
    """What was recorded as lost, or was before."""

    @property
    def others_left(self) -> int:
        """How many objects are neither sound nor accepted as lost."""
        done = len(self.written) if self.is_healed else 0
        return len(self.plan.objects) - done - len(self.accepted)

    def rows(self) -> list[Document]:
        """The plan's rows, each with its outcome."""
        return [
            row
            | {
                "written": one.part in self.written,
                "healed": self.is_healed and one.part in self.written,
                "quarantinedAs": self.quarantined.get(one.part),
                "accepted": one.part in self.accepted,
            }
            for one, row in zip(self.plan.objects, self.plan.rows(), strict=True)
        ]


@dataclass(slots=True, kw_only=True)
class HealingOutcome(Outcome):
    """How much of the plans was applied. Skipped are segments that were not looked at."""

    segments: list[HealedSegment] = field(default_factory=list)

    @property
    def others_left(self) -> int:
        """How many objects are not sound."""
        return sum(one.left for one in self.segments)

    @property
    def lost(self) -> int:
        """How many objects nothing has the bytes of, and nobody accepted as lost."""
        lost = [(one.part, segment) for segment in self.segments for one in segment.plan.unaccepted()]
        return sum(part not in segment.accepted for part, segment in lost)

    @property
    def written(self) -> int:
        """How many objects were written."""
        return sum(len(one.written) for one in self.segments)

    @property
    def healed(self) -> int:
        """How many of them were found sound afterwards."""
        return sum(len(one.written) for one in self.segments if one.is_healed)


@dataclass(slots=True)
class Healing:
    """One run over the plans for some segments."""

    plans: Sequence[HealingPlan]
    healer: Healer
    store: WritableObjectStore
    fresh: FreshSegments
    index_interval_bytes: Callable[[str], int]
    """Gives a topic's `index.interval.bytes`."""
    key: bytes | None = None
    """Seals the notes of which bytes the copies hold."""
    accept: Callable[[HealingPlan], None] | None = None
    """Records what cannot be healed as lost."""
    tell: Callable[[HealedSegment], None] = lambda _segment: None
    """Called with each segment that was come to."""
    _snapshots: dict[str, bytes] = field(default_factory=dict)

    def run(self, lease: Hold) -> HealingOutcome:
        """Writes what the plans have to write; ends as `write_in_turn` does."""
        outcome = HealingOutcome(segments=[HealedSegment(plan=plan) for plan in self.plans])
        for segment in outcome.segments:
            segment.accepted += segment.plan.accepted
        to_do = [one for one in outcome.segments if one.plan.to_write() or (self.accept and one.plan.unaccepted())]

        def heal(segment: HealedSegment) -> None:
            self._heal(segment, lease, is_last=segment is to_do[-1])

        promised = write_in_turn(to_do, heal, self.tell, self.fresh, outcome)
        for segment in to_do:
            segment.is_healed = segment.is_healed and segment.plan.metadata.segment_id in promised
        return outcome

    def _heal(self, segment: HealedSegment, lease: Hold, *, is_last: bool) -> None:
        found = self._found_again(segment.plan)
        metadata = found.metadata
        self._demand_unchanged(metadata)  # once more: finding the bytes may have taken long
        keep = Quarantining(self.store, self.key, self.fresh.cluster_id, metadata.segment_id)
        objects = found.to_write()
        for one in objects:
            lease.renew()
            with critical_section():
                self._write(one, segment, keep)
                if is_last and one is objects[-1]:
                    mark_complete()
        if found.rebuilt_snapshot is not None:
            self._snapshots[metadata.segment_id] = found.rebuilt_snapshot
        if objects:
            self._look_again(found, segment)
        if self.accept and (lost := found.unaccepted()):
            lease.renew()
            with critical_section():
                self.accept(found)
            segment.accepted += [one.part for one in lost]

    def _look_again(self, found: HealingPlan, segment: HealedSegment) -> None:
        """Raises TieredctlError `world-changed` where the segment is not sound after all."""
        metadata = found.metadata
        interval = self.index_interval_bytes(metadata.topic_id_partition.topic)
        left = examine(metadata, self.store, self.healer.layout, interval).damage
        segment.is_healed = left.keys() <= {one.part for one in found.not_found()}
        if not segment.is_healed:
            part, reason = next(iter(left.items()))
            message = f"Segment {metadata.segment_id} was written and is still not sound: {part.value}: {reason}."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _found_again(self, plan: HealingPlan) -> HealingPlan:
        """The same plan, with its bytes, made of the metadata and the objects of now. Raises TieredctlError
        `world-changed` where it is another one."""
        segment_id = plan.metadata.segment_id
        segment = self._demand_unchanged(plan.metadata)
        interval = self.index_interval_bytes(plan.metadata.topic_id_partition.topic)
        found = replace(self.healer.plan(segment, interval, self._snapshots), accepted=plan.accepted)
        if [one.claim for one in found.objects] != [one.claim for one in plan.objects]:
            message = f"The objects of segment {segment_id}, or what they would be written from, changed."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        return found

    def _demand_unchanged(self, metadata: RemoteLogSegmentMetadata) -> KnownSegmentOfPartition:
        """The segment, if the metadata says of it what it said; else raises TieredctlError `world-changed`."""
        segment = self.fresh.finished(metadata.segment_id)
        if segment.metadata != metadata:
            message = f"The metadata of segment {metadata.segment_id} changed since it was read."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        return segment

    def _write(self, one: PlannedObject, segment: HealedSegment, keep: Quarantining) -> None:
        if one.found is None:
            raise TypeError(f"{one.key} has nothing to write")
        copied_as = put_or_replace(self.store, one.key, one.found.data, one.stored, keep, segment.tried)
        segment.written.append(one.part)
        if copied_as is not None:
            segment.quarantined[one.part] = copied_as

"""Registers a plan's segments in the metadata: each one's COPY_SEGMENT_STARTED, then its COPY_SEGMENT_FINISHED.

What was done is in the metadata itself: another run finds it there, finishes it, and writes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import JsonOnly
from tieredctl.ops.change import Outcome, OutcomeByPartition
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.metadata_recovery.event_rebuilding import as_started
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.recovery_plan import PartitionRecovery, PartitionRecoveryRow, Recovery
from tieredctl.ops.metadata_recovery.segment_judgement import JudgedSegment, finished_event
from tieredctl.ports.metadata_source import NO_BROKER, EventPublisher
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.interruption import critical_section, mark_complete

BATCH_SEGMENTS = 100
"""How many segments are registered at once."""
LOOK_AGAIN_MS = 5_000
"""How old the metadata that was read may be when segments are registered: brokers write events meanwhile."""
_WORLD_CHANGED = "Check the plan again: a broker that started meanwhile may have moved its log start."


@dataclass(frozen=True, slots=True)
class RecoveredPartitionRow(PartitionRecoveryRow):
    """The same, once the plan was applied."""

    recovered: int
    events: int
    gone_meanwhile: JsonOnly[int]
    changed_meanwhile: JsonOnly[list[str]]
    left: int


@dataclass(slots=True, kw_only=True)
class RecoveredPartition(Outcome):
    """How far one partition got. Done are segments that were recovered; skipped are those that brokers began to
    delete, or finished, after the plan was made."""

    plan: PartitionRecovery
    events: int = 0
    """Events that were written."""
    changed: list[str] = field(default_factory=list)
    """Segments whose objects are no longer as planned; they are left alone."""
    left: int = 0
    """Segments that are still not in the metadata when it is read at the end."""

    def row(self) -> RecoveredPartitionRow:
        return self.plan.row().extended(
            RecoveredPartitionRow,
            recovered=self.done,
            events=self.events,
            gone_meanwhile=self.skipped,
            changed_meanwhile=list(self.changed),
            left=self.left,
        )


RecoveryOutcome = OutcomeByPartition[RecoveredPartition]
"""How far all partitions got, including those that were not reached."""


@dataclass(slots=True)
class Recoverer:
    """One run over a plan."""

    recovery: Recovery
    known: KnownMetadata
    publisher: EventPublisher
    lease: Hold
    clock_ms: Callable[[], int]
    look: Callable[[TopicIdPartition], LivePartition]
    """Asks the cluster for a partition."""
    store: ObjectStore
    batch_segments: int = BATCH_SEGMENTS
    tell: Callable[[RecoveredPartition], None] = lambda _outcome: None
    """Called with what was done so far."""
    _looked_ms: int = field(default=-LOOK_AGAIN_MS)

    def run(self) -> RecoveryOutcome:
        """Recovers every partition, then reads the metadata back. Whatever stops it is in the outcome."""
        planned = [plan for plan in self.recovery.partitions if plan.to_recover()]
        outcome = RecoveryOutcome(
            partitions=[RecoveredPartition(plan=plan, left=len(plan.to_recover())) for plan in planned]
        )
        try:
            for one in outcome.partitions:
                self._recover(one, is_last=one is outcome.partitions[-1])
            self._read_back(outcome)
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _recover(self, outcome: RecoveredPartition, *, is_last: bool) -> None:
        self._demand_same_log_start(outcome.plan)
        segments = outcome.plan.to_recover()
        for first in range(0, len(segments), self.batch_segments):
            batch = segments[first : first + self.batch_segments]
            self.lease.renew()
            self._look_again()
            partition = outcome.plan.partition
            may_begin = self.known.begun_at_most(partition, [_segment_id(one) for one in batch])
            open_segments = [one for one in batch if _segment_id(one) in may_begin]
            outcome.skipped += len(batch) - len(open_segments)
            there = self._still_there(open_segments)
            unchanged = {_segment_id(one) for one in there}
            outcome.changed += [_segment_id(one) for one in open_segments if _segment_id(one) not in unchanged]
            with critical_section():
                self._publish(outcome, [event for one in there for event in self._events(one)])
                outcome.done += len(there)
                outcome.left -= len(there) + len(batch) - len(open_segments)
                if is_last and batch[-1] is segments[-1]:
                    mark_complete()
            self.tell(outcome)

    def _still_there(self, segments: list[JudgedSegment]) -> list[JudgedSegment]:
        """The segments whose objects are still as planned: some may have been removed since."""

        def is_there(one: JudgedSegment) -> bool:
            return all(self.store.head(stored.key) == stored for stored in one.stored.objects.values())

        return list(compress(segments, in_parallel(self.store, is_there, segments)))

    def _publish(self, outcome: RecoveredPartition, events: Sequence[MetadataEvent]) -> None:
        if events:
            self.publisher.publish(outcome.plan.metadata_partition, events)
            outcome.events += len(events)

    def _look_again(self) -> None:
        if self.clock_ms() - self._looked_ms >= LOOK_AGAIN_MS:
            self._looked_ms = self.clock_ms()
            self.known.refresh()

    def _demand_same_log_start(self, plan: PartitionRecovery) -> None:
        """Raises TieredctlError `world-changed` if the log now starts above what is to be recovered: brokers would
        delete it."""
        log = self.look(plan.partition).log
        first = min(metadata.end_offset for metadata in plan.recovered())
        if log is None or log.log_start_offset > first:
            now = "no longer exists" if log is None else f"now starts at {log.log_start_offset}"
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"The log of {plan.partition} {now}.", hint=_WORLD_CHANGED)

    def _events(self, segment: JudgedSegment) -> list[MetadataEvent]:
        assert segment.metadata is not None
        metadata = replace(segment.metadata, event_timestamp_ms=self.clock_ms())
        started: list[MetadataEvent] = [as_started(metadata)] if segment.needs_start else []
        return [*started, finished_event(metadata, metadata.event_timestamp_ms)]

    def _read_back(self, outcome: RecoveryOutcome) -> None:
        self.known.refresh()
        for one in outcome.partitions:
            self._take_back(one)
        self.known.refresh()
        for one in outcome.partitions:
            one.left = sum(not is_settled for is_settled in self._settled(one.plan))

    @critical_section()
    def _take_back(self, outcome: RecoveredPartition) -> None:
        """Records the deletion again for segments that brokers deleted just before they were registered."""
        there = self.known.segments(outcome.plan.partition)
        recovered = {one.segment_id: one for one in outcome.plan.recovered()}
        deleted = self.known.deleted(list(recovered))
        # Events of this recovery make those look finished.
        undone = [one for one in recovered.values() if one.segment_id in deleted and _is_finished(there, one)]
        self.lease.renew()
        for state in (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED):
            self._publish(outcome, [replace(finished_event(one, self.clock_ms()), state=state) for one in undone])
        outcome.done -= len(undone)
        outcome.skipped += len(undone)

    def _settled(self, plan: PartitionRecovery) -> Iterator[bool]:
        """Whether each segment is in the metadata as it was rebuilt, or a broker's events have superseded it."""
        there, recovered = self.known.segments(plan.partition), plan.recovered()
        ids = [one.segment_id for one in recovered]
        deleted = {*ids} if self.known.is_removed(plan.partition) else self.known.deleted(ids)
        for wanted in recovered:
            is_finished = _is_finished(there, wanted)
            if wanted.segment_id in deleted or not is_finished:
                yield wanted.segment_id in deleted and not is_finished
                continue
            current = there[wanted.segment_id]
            same = replace(current, author=wanted.author, event_timestamp_ms=wanted.event_timestamp_ms)
            yield current.author != NO_BROKER or same == wanted


def _is_finished(there: Mapping[str, RemoteLogSegmentMetadata], segment: RemoteLogSegmentMetadata) -> bool:
    current = there.get(segment.segment_id)
    return current is not None and current.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def _segment_id(segment: JudgedSegment) -> str:
    return segment.stored.identity.segment_id

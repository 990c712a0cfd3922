"""Registers a plan's segments in the metadata: each one's COPY_SEGMENT_STARTED, then its COPY_SEGMENT_FINISHED.

What was done is in the metadata itself: another run finds it there, finishes it, and writes nothing twice. Whatever
ends a run, the metadata is read back: what a broker deleted just before it was registered is taken back, or named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import ClassVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import has_passed
from tieredctl.model.counted import counted
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import JsonOnly
from tieredctl.ops.change import Outcome, OutcomeByPartition, stopped_twice
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.metadata_recovery.event_rebuilding import as_started
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.recovery_plan import PartitionRecovery, PartitionRecoveryRow, Recovery
from tieredctl.ops.metadata_recovery.segment_judgement import JudgedSegment, finished_event
from tieredctl.ports.metadata_source import NO_BROKER, EventPublisher
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.interruption import cleanup_section, critical_section, mark_complete

BATCH_SEGMENTS = 100
"""How many segments are registered at once."""
LOOK_AGAIN_MS = 5_000
"""How old the metadata that was read may be when segments are registered: brokers write events meanwhile."""
_RUN_AGAIN = "Run the command again: it takes back what brokers deleted before it was registered."
_WORLD_CHANGED = "Check the plan again: a broker that started meanwhile may have moved its log start."


@dataclass(frozen=True, slots=True)
class RecoveredPartitionRow(PartitionRecoveryRow):
    """The same, once the plan was applied."""

    recovered: int
    taken_back: JsonOnly[int]
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
    skipped_are_settled: ClassVar[bool] = True
    unsettled: int = 0
    """Segments that are still not in the metadata when it is read at the end, or are promised and should not be."""
    taken_back: int = 0
    """Segments that an earlier run had registered although brokers deleted them, and whose deletion is recorded now."""
    tried: set[str] = field(default_factory=set)
    """The segments whose events were sent: any of these may be in the metadata, whether or not an answer came."""
    sent: set[str] = field(default_factory=set)
    """Those among them whose events were all acknowledged."""

    @property
    def others_left(self) -> int:
        return self.unsettled

    def row(self) -> RecoveredPartitionRow:
        return self.plan.row().extended(
            RecoveredPartitionRow,
            recovered=self.done,
            taken_back=self.taken_back,
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
        """Recovers every partition, then reads the metadata back, whatever stopped it: that is in the outcome. Raises
        KeyboardInterrupt after an interruption, or TieredctlError `interrupted` with what is then still promised."""
        planned = [
            RecoveredPartition(plan=plan, unsettled=plan.to_do) for plan in self.recovery.partitions if plan.to_do
        ]
        outcome = RecoveryOutcome(partitions=planned)
        try:
            self._recover_each(outcome)
            self._read_back(outcome)
        except KeyboardInterrupt:
            outcome.stopped = interrupted = TieredctlError(ErrorCode.INTERRUPTED, "Interrupted.")
            with cleanup_section():
                self._read_back(outcome)
            if outcome.stopped is interrupted:
                raise
            raise outcome.stopped from None
        return outcome

    def _recover_each(self, outcome: RecoveryOutcome) -> None:
        try:
            for one in outcome.partitions:
                self._recover(one, is_last=one is outcome.partitions[-1])
        except TieredctlError as error:
            outcome.stopped = error

    def _recover(self, outcome: RecoveredPartition, *, is_last: bool) -> None:
        segments = outcome.plan.to_recover()
        self._take_back_earlier(outcome, is_last=is_last and not segments)
        if segments:
            self._demand_same_log_start(outcome.plan)
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
                outcome.tried |= unchanged
                self._publish(outcome, [event for one in there for event in self._events(one)])
                outcome.sent |= unchanged
                outcome.done += len(there)
                outcome.unsettled -= len(there) + len(batch) - len(open_segments)
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
        if has_passed(LOOK_AGAIN_MS, self._looked_ms, self.clock_ms()):
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
        """What it meets, and what stays promised, is in the outcome beside what stopped the run."""
        tried = [one for one in outcome.partitions if one.tried or outcome.stopped is None]
        if not tried:
            return
        try:
            self.known.refresh()
        except TieredctlError as error:
            message = f"{error.message} Whether brokers deleted meanwhile what was registered is unknown."
            unread = TieredctlError(error.code, message, hint=_RUN_AGAIN)
            outcome.stopped = stopped_twice(outcome.stopped, unread)
            return
        try:
            for one in tried:
                self._take_back_recovered(one)
        except TieredctlError as error:
            outcome.stopped = stopped_twice(outcome.stopped, error)
        try:
            self.known.refresh()
        except TieredctlError as error:
            outcome.stopped = stopped_twice(outcome.stopped, error)
        for one in tried:
            one.unsettled = sum(not is_settled for is_settled in self._settled(one.plan))
        if undone := [metadata for one in tried for metadata in self._undone(one.plan)]:
            outcome.stopped = stopped_twice(outcome.stopped, _not_taken_back(undone))

    def _undone(self, plan: PartitionRecovery) -> list[RemoteLogSegmentMetadata]:
        """The planned segments that brokers deleted just before they were registered: events of a recovery make those
        look finished, or their deletion begun and not ended."""
        left = self.known.finished_though_deleted(plan.partition)
        left += self.known.deletion_begun_by_no_broker(plan.partition)
        left_by_id = {one.segment_id: one for one in left}
        planned = [*plan.recovered(), *(one.metadata for one in plan.to_take_back)]
        return [left_by_id[one.segment_id] for one in planned if one.segment_id in left_by_id]

    def _take_back_recovered(self, outcome: RecoveredPartition) -> None:
        undone = [one for one in self._undone(outcome.plan) if one.segment_id in outcome.tried]
        self._record_deletion(outcome, undone)
        outcome.done -= sum(one.segment_id in outcome.sent for one in undone)
        outcome.skipped += len(undone)

    def _take_back_earlier(self, outcome: RecoveredPartition, *, is_last: bool) -> None:
        """What is still as it was shown: promised by no broker's event, deleted by another, and without objects."""
        planned = outcome.plan.to_take_back
        if not planned:
            return
        self.known.refresh()
        left = self._undone(outcome.plan)
        gone = in_parallel(self.store, lambda one: all(self.store.head(key) is None for key in one.keys), planned)
        undone = [one.metadata for one in compress(planned, gone) if one.metadata in left]
        with critical_section():
            self._record_deletion(outcome, undone)
            outcome.taken_back += len(undone)
            outcome.unsettled -= len(undone)
            if is_last:
                mark_complete()

    @critical_section()
    def _record_deletion(self, outcome: RecoveredPartition, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
        if not segments:
            return
        self.lease.renew()
        started, finished = RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
        for state, of_state in ((started, [one for one in segments if one.state is not started]), (finished, segments)):
            self._publish(outcome, [replace(finished_event(one, self.clock_ms()), state=state) for one in of_state])

    def _settled(self, plan: PartitionRecovery) -> Iterator[bool]:
        """Whether each segment is in the metadata as it was rebuilt, or a broker's events have superseded it; and
        whether each that is to be taken back is promised no more, and the end of its deletion recorded."""
        there, recovered = self.known.segments(plan.partition), plan.recovered()
        undone = {one.segment_id for one in self._undone(plan)}
        yield from (one.metadata.segment_id not in undone for one in plan.to_take_back)
        ids = [one.segment_id for one in recovered]
        is_removed = self.known.is_removed(plan.partition)
        deleted = {*ids} if is_removed else self.known.deleted_in(plan.partition, ids)
        for wanted in recovered:
            is_finished = _is_finished(there, wanted)
            if wanted.segment_id in deleted or not is_finished:
                yield wanted.segment_id in deleted and not is_finished and wanted.segment_id not in undone
                continue
            current = there[wanted.segment_id]
            same = replace(current, author=wanted.author, event_timestamp_ms=wanted.event_timestamp_ms)
            yield current.author != NO_BROKER or same == wanted


def _not_taken_back(segments: Sequence[RemoteLogSegmentMetadata]) -> TieredctlError:
    ids = ", ".join(one.segment_id for one in segments)
    count = counted(len(segments), "segment that brokers deleted is", "segments that brokers deleted are")
    message = f"{count} promised, or not recorded as deleted to the end: {ids}."
    return TieredctlError(ErrorCode.WORLD_CHANGED, message, hint=_RUN_AGAIN)


def _is_finished(there: Mapping[str, RemoteLogSegmentMetadata], segment: RemoteLogSegmentMetadata) -> bool:
    current = there.get(segment.segment_id)
    return current is not None and current.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def _segment_id(segment: JudgedSegment) -> str:
    return segment.stored.identity.segment_id

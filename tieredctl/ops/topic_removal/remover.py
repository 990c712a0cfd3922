"""KIP-405's RemotePartitionRemover, which no release of Kafka has: deletes a removed topic's partitions from remote
storage, and records that in the metadata (KIP-405, "Topic deletion lifecycle").

It deletes what a plan showed and the user confirmed, and nothing else: any change since then stops it. What was done
is in the metadata itself, each event confirmed before the next step: another run resumes from there, and writes no
event twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.result_row import JsonOnly
from tieredctl.ops.change import Outcome, OutcomeByPartition
from tieredctl.ops.guards.deletion import delete_surely
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.kept_versions import DeletedVersions, delete_versions, keys_left
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.topic_removal.topic_metadata import PartitionState, TopicMetadata
from tieredctl.ops.topic_removal.topic_removal_plan import (
    PartitionPlan,
    PartitionRemovalRow,
    RemovalScope,
    appeared_since,
    changes_to_shown,
    demand_no_changes,
    keys_with_versions,
    named,
    plan_partition,
)
from tieredctl.ports.layout import Layout
from tieredctl.ports.metadata_source import NO_BROKER, EventPublisher
from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    Capability,
    DeletionOutcome,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.process.interruption import critical_section, mark_complete

BATCH_SEGMENTS = 100
"""How many segments are between the same two steps at a time."""
_KEYS_BETWEEN_RENEWALS = 100
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class RemovedPartitionRow(PartitionRemovalRow):
    """The same, once the plan was applied."""

    done: int
    failed: int
    segments_done: JsonOnly[int]
    events: int
    appeared: JsonOnly[list[str]]
    complete: bool


@dataclass(slots=True, kw_only=True)
class RemovedPartition(Outcome):
    """How far the removal of one partition got. Done are objects: those that were deleted, or were gone when their turn
    came."""

    plan: PartitionPlan
    delete_state: RemotePartitionDeleteState | None
    """How far the removal has got, by the metadata."""
    segments: int = 0
    """How many segments had their deletion finished."""
    events: int = 0
    """That were written."""
    appeared: list[str] = field(default_factory=list)
    """What was added to a live topic after the plan was shown, and was left alone."""
    versions: DeletedVersions | None = None
    """Deleted versions of what this run or an earlier one removed; None if that was not asked for, or not reached."""
    is_empty: bool = False
    """Whether nothing was found left to do."""

    @property
    def others_left(self) -> int:
        return int(not self.is_empty)

    def row(self) -> RemovedPartitionRow:
        """The plan, with what became of it and the state of now."""
        state = None if self.delete_state is None else self.delete_state.name
        return replace(self.plan.row(), state=state).extended(
            RemovedPartitionRow,
            done=self.done,
            failed=self.failed,
            segments_done=self.segments,
            events=self.events,
            appeared=list(self.appeared),
            complete=self.is_complete,
        )


@dataclass(slots=True, kw_only=True)
class TopicRemovalOutcome(OutcomeByPartition[RemovedPartition]):
    """How far the removal of a topic got. Partitions that were not reached are not in it."""

    @property
    def others_left(self) -> int:
        return keys_left(self.versions) + sum(one.left for one in self.partitions)

    @property
    def versions(self) -> DeletedVersions | None:
        """The deleted versions of all partitions."""
        of_partitions = [one.versions for one in self.partitions if one.versions is not None]
        if not of_partitions:
            return None
        total = DeletedVersions()
        for one in of_partitions:
            total.add(one)
        return total


@dataclass(frozen=True, slots=True)
class RemotePartitionRemover:
    """One run over the partitions of a topic."""

    plans: Sequence[PartitionPlan]
    """As they were shown: one for each partition in the metadata."""
    metadata: TopicMetadata
    store: WritableObjectStore
    layout: Layout
    publisher: EventPublisher
    lease: Hold
    clock_ms: Callable[[], int]
    scope: RemovalScope
    batch_segments: int = BATCH_SEGMENTS
    tell: Callable[[RemovedPartition], None] = lambda _outcome: None
    """Called with what was done so far."""
    with_versions: bool = False
    """Whether to delete the kept versions of deleted objects too."""

    def run(self) -> TopicRemovalOutcome:
        """Removes what was shown of every partition. Whatever stops it is in the outcome."""
        outcome = TopicRemovalOutcome()
        try:
            self._demand_as_shown(self.plans)
            for number, plan in enumerate(self.plans):
                if number:  # those before it may have taken hours
                    self._demand_as_shown([plan])
                one = RemovedPartition(plan=plan, delete_state=plan.state.delete_state)
                outcome.partitions.append(one)
                self._remove(one)
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _demand_as_shown(self, plans: Sequence[PartitionPlan]) -> None:
        """Raises TieredctlError `world-changed` that names what changed. A live topic is still being written: what is
        added to it is left alone."""
        self.metadata.refresh()
        changes: list[str] = []
        if not self.scope.topic_is_live:
            shown = {plan.state.partition for plan in self.plans}
            changes += [f"{one} appeared" for one in self.metadata.partitions() if one not in shown]
        for plan in plans:
            now = self._now(plan)
            changes += changes_to_shown(plan, now)
            if not self.scope.topic_is_live:
                changes += appeared_since(plan, now)
        demand_no_changes(changes)

    def _now(self, plan: PartitionPlan) -> PartitionPlan:
        return plan_partition(self.metadata.state(plan.state.partition), self.store, self.layout, self.scope)

    def _remove(self, outcome: RemovedPartition) -> None:
        plan = outcome.plan
        if not plan.state.is_removed:
            self._begin(plan.state, outcome)
        for segments in _batches(plan.segments, self.batch_segments):
            self._delete_segments(segments, outcome)
        for objects in _batches(plan.leftovers, MOST_DELETED_AT_ONCE):
            self._delete(objects, outcome)
        if outcome.failed == 0:
            self._end(outcome)
        if self.with_versions:
            self._delete_versions(outcome)

    def _begin(self, state: PartitionState, outcome: RemovedPartition) -> None:
        """Publishes DELETE_PARTITION_MARKED and DELETE_PARTITION_STARTED, unless they are there already."""
        if state.delete_state is None:
            self._publish_partition(RemotePartitionDeleteState.DELETE_PARTITION_MARKED, outcome)
        if state.delete_state is not RemotePartitionDeleteState.DELETE_PARTITION_STARTED:
            self._publish_partition(RemotePartitionDeleteState.DELETE_PARTITION_STARTED, outcome)

    @critical_section()
    def _delete_segments(self, segments: Sequence[RemoteLogSegmentMetadata], outcome: RemovedPartition) -> None:
        begun = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
        self._publish_segments([one for one in segments if one.state is not begun], begun, outcome)
        kept: set[str] = set()
        objects = [stored for one in segments for stored in outcome.plan.objects[one.segment_id]]
        for batch in _batches(objects, MOST_DELETED_AT_ONCE):
            kept |= self._delete(batch, outcome)
        gone = [one for one in segments if kept.isdisjoint(map(_key, outcome.plan.objects[one.segment_id]))]
        self._publish_segments(gone, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED, outcome)
        outcome.segments += len(gone)
        self.tell(outcome)

    @critical_section()
    def _delete(self, objects: Sequence[StoredObject], outcome: RemovedPartition) -> set[str]:
        """Deletes objects; returns the keys of those that may still exist. Raises TieredctlError if none was."""
        self.lease.renew()
        self._demand_versions(objects)
        kept: dict[str, TieredctlError | None] = {}
        for deletion in delete_surely(self.store, objects):
            if deletion.outcome is DeletionOutcome.GONE:
                outcome.done += 1
                outcome.bytes += deletion.stored.size
            else:
                kept[deletion.stored.key] = deletion.error
        outcome.failed += len(kept)
        if kept and len(kept) == len(objects):
            key, error = next(iter(kept.items()))
            raise error or TieredctlError(ErrorCode.REMOVAL_FAILED, f"{key} was rewritten after it was listed.")
        return set(kept)

    def _demand_versions(self, objects: Sequence[StoredObject]) -> None:
        """In a store that deletes whatever a key holds, checks right before that this is what was shown. Raises
        TieredctlError `world-changed`."""
        if Capability.CONDITIONAL_DELETE in self.store.capabilities:
            return
        current = in_parallel(self.store, self.store.head, list(map(_key, objects)))
        changed = [now.key for now, shown in zip(current, objects, strict=True) if now is not None and now != shown]
        demand_no_changes([f"object {key} was rewritten" for key in changed])

    def _end(self, outcome: RemovedPartition) -> None:
        """Checks once more; publishes DELETE_PARTITION_FINISHED if nothing is left and the event is not there yet."""
        before = outcome.plan.state
        partition = before.partition
        self.metadata.refresh()
        left = self._now(outcome.plan)
        if self.scope.topic_is_live:
            outcome.appeared = list(appeared_since(outcome.plan, left))
            outcome.is_empty = left.is_empty and not outcome.plan.copies
            return
        state = left.state
        if state.last_broker_event not in (None, before.last_broker_event):
            message = f"Broker {state.last_broker_event.broker_id} wrote events of {partition} while it was removed."
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, message, hint="Run it again once the brokers are done with it."
            )
        if not left.is_empty:
            raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"{partition} is not removed: {named(_left(left))}.")
        if not state.is_removed:
            with critical_section():
                self._publish_partition(RemotePartitionDeleteState.DELETE_PARTITION_FINISHED, outcome)
                if outcome.plan is self.plans[-1] and not self.with_versions:
                    mark_complete()
        outcome.is_empty = True
        self.tell(outcome)

    def _delete_versions(self, outcome: RemovedPartition) -> None:
        """Comes last: what this run and earlier ones deleted is in no listing."""
        outcome.versions = DeletedVersions()
        versioned_keys = keys_with_versions(outcome.plan, self.store, self.layout, self.scope)
        for keys in _batches(versioned_keys, _KEYS_BETWEEN_RENEWALS):
            self.lease.renew()
            outcome.versions.add(delete_versions(self.store, keys))

    @critical_section()
    def _publish_partition(self, state: RemotePartitionDeleteState, outcome: RemovedPartition) -> None:
        if self.scope.segment_events_only:
            return
        partition = outcome.plan.state
        event = RemotePartitionDeleteMetadata(
            topic_id_partition=partition.partition,
            author=NO_BROKER,
            event_timestamp_ms=self.clock_ms(),
            state=state,
            form=partition.form,
        )
        self._publish([event], outcome)
        outcome.delete_state = state

    def _publish_segments(
        self, segments: Sequence[RemoteLogSegmentMetadata], state: RemoteLogSegmentState, outcome: RemovedPartition
    ) -> None:
        now_ms = self.clock_ms()
        events = [
            RemoteLogSegmentMetadataUpdate(
                topic_id_partition=segment.topic_id_partition,
                segment_id=segment.segment_id,
                author=NO_BROKER,
                event_timestamp_ms=now_ms,
                state=state,
                # An update without it would remove from the segment what shows where its objects are.
                custom_metadata=segment.custom_metadata,
                form=segment.form,
            )
            for segment in segments
        ]
        if events:
            self._publish(events, outcome)

    def _publish(self, events: Sequence[MetadataEvent], outcome: RemovedPartition) -> None:
        self.lease.renew()
        self.publisher.publish(outcome.plan.state.metadata_partition, events)
        outcome.events += len(events)


def _left(plan: PartitionPlan) -> list[str]:
    segments = [f"segment {segment.segment_id} is still there" for segment in plan.segments]
    return [*(f"object {stored.key} is still there" for stored in plan.doomed()), *segments]


def _batches(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]


def _key(stored: StoredObject) -> str:
    return stored.key

"""KIP-405's RemotePartitionRemover, which no release of Kafka has: takes a removed topic's partitions out of remote
storage, and says so in the metadata (KIP-405, "Topic deletion lifecycle").

What was done is in the metadata itself, each event confirmed before the next step: another run goes on from there, and
writes no event twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tieredctl.errors import TieredctlError
from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.ops.documents import Document
from tieredctl.ops.event_publisher import NO_BROKER, EventPublisher
from tieredctl.ops.partition_removal.planning import PartitionPlan, RemovalScope, plan_partition
from tieredctl.ops.partition_removal.topic_metadata import PartitionState, TopicMetadata
from tieredctl.ops.removal.lease import Hold
from tieredctl.storage.protocol import MOST_DELETED_AT_ONCE, DeletionOutcome, StoredObject, WritableObjectStore

BATCH_SEGMENTS = 100
"""How many segments are between the same two steps at a time."""
_Item = TypeVar("_Item")


@dataclass(slots=True)
class PartitionOutcome:
    """How far the removal of one partition came."""

    plan: PartitionPlan
    delete_state: RemotePartitionDeleteState | None
    """How far the removal is by now, by the metadata."""
    segments: int = 0
    """Whose deletion was finished."""
    objects: int = 0
    """That were deleted, or found gone when they were to be."""
    bytes: int = 0
    failed: int = 0
    """Objects that could not be deleted."""
    events: int = 0
    """That were written."""
    is_complete: bool = False
    """Whether nothing is left to do."""

    def document(self) -> Document:
        """The plan, with what became of it and the state of now."""
        return {
            **self.plan.document(),
            "state": None if self.delete_state is None else self.delete_state.name,
            "done": self.objects,
            "failed": self.failed,
            "segmentsDone": self.segments,
            "events": self.events,
            "complete": self.is_complete,
        }


@dataclass(slots=True)
class RemovalOutcome:
    """How far the removal of a topic came. Partitions that were not reached are not in it."""

    partitions: list[PartitionOutcome] = field(default_factory=list)
    stopped: TieredctlError | None = None
    """Why not all was tried."""

    @property
    def is_complete(self) -> bool:
        return self.stopped is None and all(one.is_complete for one in self.partitions)


@dataclass(frozen=True, slots=True)
class RemotePartitionRemover:
    """One run over the partitions of a topic."""

    metadata: TopicMetadata
    store: WritableObjectStore
    layout: Layout
    publisher: EventPublisher
    lease: Hold
    clock_ms: Callable[[], int]
    scope: RemovalScope
    batch_segments: int = BATCH_SEGMENTS
    tell: Callable[[PartitionOutcome], None] = lambda _outcome: None
    """Called with what was done so far."""

    def run(self) -> RemovalOutcome:
        """Removes what is left of every partition. Whatever stops it is in the outcome."""
        outcome = RemovalOutcome()
        try:
            self.metadata.refresh()
            for partition in self.metadata.partitions():
                state = self.metadata.state(partition)
                plan = plan_partition(state, self.store, self.layout, self.scope)
                one = PartitionOutcome(plan, state.delete_state)
                outcome.partitions.append(one)
                self._remove(one)
        except TieredctlError as error:
            outcome.stopped = error
        return outcome

    def _remove(self, outcome: PartitionOutcome) -> None:
        plan = outcome.plan
        if not plan.state.is_removed:
            self._begin(plan.state, outcome)
        for segments in _batches(plan.segments, self.batch_segments):
            self._delete_segments(segments, outcome)
        for objects in _batches(plan.leftovers, MOST_DELETED_AT_ONCE):
            self._delete(objects, outcome)
        if outcome.failed == 0:
            self._end(outcome)

    def _begin(self, state: PartitionState, outcome: PartitionOutcome) -> None:
        """Publishes what of DELETE_PARTITION_MARKED and DELETE_PARTITION_STARTED is not there yet."""
        if state.delete_state is None:
            self._publish_partition(RemotePartitionDeleteState.DELETE_PARTITION_MARKED, outcome)
        if state.delete_state is not RemotePartitionDeleteState.DELETE_PARTITION_STARTED:
            self._publish_partition(RemotePartitionDeleteState.DELETE_PARTITION_STARTED, outcome)

    def _delete_segments(self, segments: Sequence[RemoteLogSegmentMetadata], outcome: PartitionOutcome) -> None:
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

    def _delete(self, objects: Sequence[StoredObject], outcome: PartitionOutcome) -> set[str]:
        """Deletes objects: the keys of those that may still be there. Raises TieredctlError where none could be."""
        self.lease.renew()
        kept: dict[str, TieredctlError | None] = {}
        for deletion in self.store.delete(objects):
            if deletion.outcome is DeletionOutcome.GONE:
                outcome.objects += 1
                outcome.bytes += deletion.stored.size
            else:
                kept[deletion.stored.key] = deletion.error
        outcome.failed += len(kept)
        if kept and len(kept) == len(objects):
            key, error = next(iter(kept.items()))
            raise error or TieredctlError("removal-failed", f"{key} was written anew since it was listed.")
        return set(kept)

    def _end(self, outcome: PartitionOutcome) -> None:
        """Looks once more; publishes DELETE_PARTITION_FINISHED where that is true now, and is not there yet."""
        if self.scope.topic_is_live:
            outcome.is_complete = not outcome.plan.copies
            return
        before = outcome.plan.state
        partition = before.partition
        self.metadata.refresh()
        state = self.metadata.state(partition)
        if state.last_broker_event not in (None, before.last_broker_event):
            message = f"Broker {state.last_broker_event.broker_id} wrote events of {partition} while it was removed."
            raise TieredctlError("world-changed", message, hint="Run it again once the brokers are done with it.")
        left = plan_partition(state, self.store, self.layout, self.scope)
        if not left.is_empty:
            objects = sum(1 for _ in left.doomed())
            message = f"{partition} still has {len(left.segments)} segments and {objects} objects."
            raise TieredctlError("removal-failed", message)
        if not state.is_removed:
            self._publish_partition(RemotePartitionDeleteState.DELETE_PARTITION_FINISHED, outcome)
        outcome.is_complete = True
        self.tell(outcome)

    def _publish_partition(self, state: RemotePartitionDeleteState, outcome: PartitionOutcome) -> None:
        if self.scope.segment_events_only:
            return
        known = outcome.plan.state
        event = RemotePartitionDeleteMetadata(
            topic_id_partition=known.partition,
            author=NO_BROKER,
            event_timestamp_ms=self.clock_ms(),
            state=state,
            form=known.form,
        )
        self._publish([event], outcome)
        outcome.delete_state = state

    def _publish_segments(
        self, segments: Sequence[RemoteLogSegmentMetadata], state: RemoteLogSegmentState, outcome: PartitionOutcome
    ) -> None:
        now_ms = self.clock_ms()
        events = [
            RemoteLogSegmentMetadataUpdate(
                topic_id_partition=segment.topic_id_partition,
                segment_id=segment.segment_id,
                author=NO_BROKER,
                event_timestamp_ms=now_ms,
                state=state,
                # An update without it would take from the segment what tells where its objects are.
                custom_metadata=segment.custom_metadata,
                form=segment.form,
            )
            for segment in segments
        ]
        if events:
            self._publish(events, outcome)

    def _publish(self, events: Sequence[MetadataEvent], outcome: PartitionOutcome) -> None:
        self.lease.renew()
        self.publisher.publish(outcome.plan.state.metadata_partition, events)
        outcome.events += len(events)


def _batches(items: Sequence[_Item], most: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]


def _key(stored: StoredObject) -> str:
    return stored.key

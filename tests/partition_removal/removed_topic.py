"""A deleted topic in memory: its metadata events, what the store still has of it, and the remover's runs over both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, TOPIC_ID, segment_id
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.lease import Unguarded
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.topic_removal.remover import RemotePartitionRemover, TopicRemovalOutcome
from tieredctl.ops.topic_removal.topic_metadata import TopicMetadata
from tieredctl.ops.topic_removal.topic_removal_plan import RemovalScope, plan_partition
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import Deletion, DeletionOutcome, StoredObject, WritableObjectStore
from tieredctl.storage.memory import MemoryStore

GONE = RemovalScope()
EVENTS_ONLY = RemovalScope(segment_events_only=True)
LIVE = RemovalScope(segment_events_only=True, topic_is_live=True)
Step = tuple[str, ...]


class Killed(BaseException):
    """The process is no more."""


class DoomedStore(MemoryStore):
    """A store that deletes one object after another, and may refuse some."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()
        self.kept: set[str] = set()
        """Keys of what is said to be gone, and is not."""
        self.boundary: Callable[[], None] = lambda: None

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        return [self._deletion(stored) for stored in objects]

    def _deletion(self, stored: StoredObject) -> Deletion:
        if stored.key in self.refused:
            return Deletion(stored, DeletionOutcome.FAILED, TieredctlError(ErrorCode.STORE_FORBIDDEN, "It may not go."))
        self.boundary()
        if stored.key in self.kept:
            return Deletion(stored, DeletionOutcome.GONE)
        return super().delete([stored])[0]


@dataclass
class RemovedTopic:
    """The cluster and its store. Whatever the remover does is a boundary, at one of which it may be killed."""

    events: list[MetadataEvent] = field(default_factory=list)
    store: DoomedStore = field(default_factory=DoomedStore)
    layout: Layout = LAYOUT
    kill_at: int | None = None
    boundaries: int = 0
    after_deletion: Callable[[], object] = lambda: None
    """What happens elsewhere once DELETE_SEGMENT_FINISHED was written."""
    after_event: Callable[[], object] = lambda: None
    """What happens elsewhere once DELETE_SEGMENT_STARTED was written."""
    after_showing: Callable[[], object] = lambda: None
    """What happens elsewhere between the plan that is shown and its removal."""

    def __post_init__(self) -> None:
        self.store.boundary = self._boundary

    def copy(self, number: int, start: int, partition: TopicIdPartition = PARTITION) -> list[str]:
        """Stores the objects of a segment: their keys."""
        keys = list(LAYOUT.promised_objects(identity(number, start, partition)).values())
        for key in keys:
            self.store.put(key, b"bytes")
        return keys

    def source(self) -> EventsInMemory:
        return EventsInMemory(self.events)

    def metadata(self, topic_id: str = TOPIC_ID, partition: int | None = None) -> TopicMetadata:
        return TopicMetadata(topic_id, partition, FollowedMetadata(self.source))

    def remove(
        self,
        scope: RemovalScope = GONE,
        *,
        partition: int | None = None,
        batch_segments: int = 100,
        store: WritableObjectStore | None = None,
        with_versions: bool = False,
    ) -> TopicRemovalOutcome:
        """One run, over another store where one is given."""
        kept_in = self.store if store is None else store
        metadata = self.metadata(partition=partition)
        metadata.refresh()
        states = map(metadata.state, metadata.partitions())
        plans = [plan_partition(state, kept_in, self.layout, scope) for state in states]
        self.after_showing()
        remover = RemotePartitionRemover(
            *(plans, metadata, kept_in, self.layout, self, Unguarded(StoreClock(_clock_ms, 0)), _clock_ms, scope),
            batch_segments=batch_segments,
            with_versions=with_versions,
        )
        return remover.run()

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        assert metadata_partition == 0
        for event in events:
            self._boundary()
            self.events.append(event)
        if events[-1].state.name == "DELETE_SEGMENT_STARTED":
            self.after_event()
        if events[-1].state.name == "DELETE_SEGMENT_FINISHED":
            self.after_deletion()

    def keys(self) -> list[str]:
        """What the store has."""
        return [stored.key for stored in self.store.list()]

    def _boundary(self) -> None:
        self.boundaries += 1
        if self.boundaries == self.kill_at:
            raise Killed


def identity(number: int, start: int, partition: TopicIdPartition = PARTITION) -> ExplainedKey:
    return ExplainedKey(partition.topic, partition.topic_id, partition.partition, start, segment_id(number), Part.LOG)


def told(events: Sequence[MetadataEvent]) -> list[Step]:
    """Events in short: the state, and of a segment's the last characters of its id."""
    return [(event.state.name, *_segment(event)) for event in events]


def _clock_ms() -> int:
    return FIRST_TIMESTAMP_MS + 1_000_000


def _segment(event: MetadataEvent) -> Step:
    found = getattr(event, "segment_id", None)
    return (found,) if found else ()

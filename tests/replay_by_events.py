"""Replays the metadata topic event by event (Kafka's ConsumerTask and RemotePartitionMetadataStore): what replay by
columns is compared with.

Unlike a broker, one event that cannot be taken never hides the rest: it becomes a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.cache_by_events import CacheByEvents, said_once
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.replayed_metadata import misplaced_event, refused_event
from tieredctl.rlmm.states import Refusal, partition_may_become, refusal_once_deleted


class RemotePartitionMetadataStore:
    """The state of every partition after the events applied so far.

    With `keep_deleted`, segments that reached DELETE_SEGMENT_FINISHED and partitions that reached
    DELETE_PARTITION_FINISHED are remembered too; without it, memory follows what is still in remote storage.
    """

    def __init__(self, *, keep_deleted: bool = False) -> None:
        self.caches: dict[TopicIdPartition, CacheByEvents] = {}
        self.partition_deletes: dict[TopicIdPartition, RemotePartitionDeleteState] = {}
        self.findings: list[Finding] = []
        self._removed: set[TopicIdPartition] = set()
        """Partitions whose removal finished: whatever is reported later, no broker takes their events."""
        self._ended: set[tuple[TopicIdPartition, str]] = set()
        """Segments whose deletion finished, and that did not begin again."""
        self._deleted: dict[TopicIdPartition, dict[str, KnownSegment]] | None = {} if keep_deleted else None

    def replay(self, records: Iterable[EventRecord]) -> None:
        for record in records:
            self.apply(record)

    def apply(self, record: EventRecord) -> None:
        """One event. What Kafka would refuse is refused, and becomes a finding."""
        event = record.event
        if isinstance(event, RemoteLogSegmentMetadata):
            self._start(event, record)
        elif isinstance(event, RemoteLogSegmentMetadataUpdate):
            self._update(event, record)
        elif isinstance(event, RemotePartitionDeleteMetadata):
            self._delete_partition(event, record)
        else:
            self.findings.append(misplaced_event(record.metadata_partition, record.metadata_offset))

    def segments(self) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
        """Every known segment, by topic, topic id, partition, start offset; those deleted too where they are kept."""
        partitions = {*self.caches, *(self._deleted or ())}
        for partition in sorted(partitions, key=lambda tip: (tip.topic, tip.topic_id, tip.partition)):
            yield from ((partition, segment) for segment in self.segments_of(partition))

    def segments_of(self, partition: TopicIdPartition) -> list[KnownSegment]:
        """The same of one partition."""
        cache = self.caches.get(partition)
        known = cache.list_remote_log_segments() if cache else []
        known += (self._deleted or {}).get(partition, {}).values()
        return sorted(known, key=lambda segment: (segment.metadata.start_offset, segment.metadata_offset))

    def _start(self, metadata: RemoteLogSegmentMetadata, record: EventRecord) -> None:
        partition = metadata.topic_id_partition
        cache = self._cache(partition)
        if cache is None:
            return self._note(record, metadata.segment_id, None, Refusal.REMOVED_PARTITION)
        before = cache.state_of(metadata.segment_id)
        refusal = cache.add(said_once(metadata, record.metadata_partition, record.metadata_offset))
        if refusal:
            self._note(record, metadata.segment_id, before, refusal)
            return None
        self._ended.discard((partition, metadata.segment_id))
        if self._deleted is not None:
            self._deleted.get(partition, {}).pop(metadata.segment_id, None)

    def _update(self, update: RemoteLogSegmentMetadataUpdate, record: EventRecord) -> None:
        partition = update.topic_id_partition
        cache = self._cache(partition)
        if cache is None:
            return self._note(record, update.segment_id, None, Refusal.REMOVED_PARTITION)
        before = cache.state_of(update.segment_id)
        result = cache.update(update, record.metadata_partition, record.metadata_offset)
        name = partition, update.segment_id
        if isinstance(result, Refusal):
            late = refusal_once_deleted(update.state, result) if name in self._ended else result
            self._note(record, update.segment_id, before, late or result)
        elif update.state is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
            self._ended.add(name)
            if self._deleted is not None:
                self._deleted.setdefault(partition, {})[update.segment_id] = result

    def _cache(self, partition: TopicIdPartition) -> CacheByEvents | None:
        """The cache of a partition; None once its removal is finished."""
        if partition in self._removed:
            return None
        return self.caches.setdefault(partition, CacheByEvents())

    def _delete_partition(self, event: RemotePartitionDeleteMetadata, record: EventRecord) -> None:
        partition = event.topic_id_partition
        before = self.partition_deletes.get(partition)
        if not partition_may_become(before, event.state):
            self._note(record, str(partition), before, Refusal.ILLEGAL_TRANSITION)
        # Kafka stores the state without checking the transition, so this does.
        self.partition_deletes[partition] = event.state
        if event.state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED:
            self._removed.add(partition)
            cache = self.caches.pop(partition, None)
            if cache and self._deleted is not None:
                kept = self._deleted.setdefault(partition, {})
                kept.update((known.metadata.segment_id, known) for known in cache.list_remote_log_segments())

    def _note(
        self,
        record: EventRecord,
        subject: str,
        before: RemoteLogSegmentState | RemotePartitionDeleteState | None,
        refusal: Refusal,
    ) -> None:
        event = record.event
        segment_id = None if isinstance(event, RemotePartitionDeleteMetadata) else event.segment_id
        place, states = (record.metadata_partition, record.metadata_offset), (before, event.state)
        self.findings.append(refused_event(*place, subject, states, refusal, segment_id))


def finished_copies(records: Iterable[EventRecord]) -> list[RemoteLogSegmentMetadata]:
    """How the copies began that finished since; some may be deleted by now."""
    store = RemotePartitionMetadataStore()
    begun: dict[tuple[TopicIdPartition, str], RemoteLogSegmentMetadata] = {}
    finished: set[tuple[TopicIdPartition, str]] = set()
    for record in records:
        event, refused = record.event, len(store.findings)
        store.apply(record)
        if len(store.findings) > refused or not isinstance(
            event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate
        ):
            continue
        name = event.topic_id_partition, event.segment_id
        if isinstance(event, RemoteLogSegmentMetadata):
            begun[name] = event
            finished.discard(name)
        elif event.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            finished.add(name)
    return [begun[name] for name in finished]

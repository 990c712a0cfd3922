"""What the metadata topic says, now and as of the offsets that local stores claim to have read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tieredctl.kafka.source import MetadataSource
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadataSnapshot
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.store_check.local_stores import LocalStore
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

TopicPartition = tuple[str, int]


class StoreReplay:
    """The state that one local store's snapshots should show, each partition as of its snapshot's offset."""

    def __init__(self, store: LocalStore) -> None:
        self.state = RemotePartitionMetadataStore()
        self.unread_events: Counter[TopicIdPartition] = Counter()
        """Events after the snapshot that the committed offsets mark as read."""
        self._read_up_to: Mapping[int, int] = store.committed_offsets.offsets if store.committed_offsets else {}
        self._snapshot_offsets: dict[tuple[TopicPartition, int], int] = {
            ((folder.topic, folder.partition), folder.snapshot.metadata_partition): (
                folder.snapshot.metadata_partition_offset
            )
            for folder in store.partitions
            if folder.snapshot
        }

    def take(self, partition: TopicIdPartition, record: EventRecord) -> None:
        """An event, in the order of the topic."""
        key = (partition.topic, partition.partition), record.metadata_partition
        offset = self._snapshot_offsets.get(key)
        if offset is None:
            return
        if record.metadata_offset <= offset:
            self.state.apply(record)
        elif record.metadata_offset <= self._read_up_to.get(record.metadata_partition, -1):
            self.unread_events[partition] += 1


class MetadataToCheck:
    """The whole of a metadata source, replayed once."""

    def __init__(self, stream: EventStream, stores: Sequence[LocalStore]) -> None:
        self.state = RemotePartitionMetadataStore(keep_deleted=True)
        self.as_of_store: dict[Path, StoreReplay] = {store.path: StoreReplay(store) for store in stores}
        self.metadata_partition_of: dict[TopicIdPartition, int] = {}
        self._incarnations: dict[TopicPartition, set[TopicIdPartition]] = defaultdict(set)
        self._topics: dict[str, set[str]] = defaultdict(set)
        self.source: MetadataSource = stream.source
        for record in stream.records():
            self.state.apply(record)
            if isinstance(record.event, RemoteLogSegmentMetadataSnapshot):
                continue
            partition = record.event.topic_id_partition
            if partition not in self.metadata_partition_of:
                self.metadata_partition_of[partition] = record.metadata_partition
                self._incarnations[partition.topic, partition.partition].add(partition)
                self._topics[partition.topic_id].add(partition.topic)
            for replay in self.as_of_store.values():
                replay.take(partition, record)
        self.findings: list[Finding] = [*stream.findings, *self.state.findings]
        self.metadata_partitions = set(self.source.metadata_partitions())
        self.segments: dict[str, KnownSegment] = {
            known.metadata.segment_id: known for _, known in self.state.segments()
        }
        """Every segment that ever had an event, by id."""

    @property
    def is_whole(self) -> bool:
        """Whether an unknown id never had an event, as far as the read partitions show."""
        numbers = self.metadata_partitions
        lost = any(
            finding.kind.incomplete or finding.code is FindingCode.EVENT_UNDECODABLE for finding in self.findings
        )
        return not lost and numbers == set(range(len(numbers)))

    def end_offset(self, metadata_partition: int) -> int:
        """The offset after the last one read."""
        return self.source.offset_range(metadata_partition).end

    def incarnations(self, topic: str, partition: int) -> list[TopicIdPartition]:
        """The partitions in the metadata under a topic's name; several where it was recreated."""
        return sorted(self._incarnations.get((topic, partition), ()))

    def topics(self, topic_id: str) -> set[str]:
        """The names that the metadata has for a topic id: one, unless something is wrong."""
        return self._topics.get(topic_id, set())

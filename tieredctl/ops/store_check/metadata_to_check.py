"""What the metadata topic says, now and as of the offsets that local stores claim to have read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.store_check.local_stores import LocalStore
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents

TopicPartition = tuple[str, int]


class StoreReplay:
    """The state that one local store's snapshots should show, each partition as of its snapshot's offset."""

    def __init__(self, store: LocalStore, events: SegmentEvents) -> None:
        """`events` are all of the metadata."""
        self._events = events
        self._read_up_to = dict(store.committed_offsets.offsets) if store.committed_offsets else {}
        snapshots = {(one.topic, one.partition): one.snapshot for one in store.partitions if one.snapshot}
        self._offsets = {
            (partition, snapshot.metadata_partition): snapshot.metadata_partition_offset
            for partition in events.partitions
            if (snapshot := snapshots.get((partition.topic, partition.partition)))
        }

    def segments(self, partition: TopicIdPartition) -> dict[str, RemoteLogSegmentMetadata]:
        """Those of a partition as of its snapshot, by id."""
        return {known.metadata.segment_id: known.metadata for known in self._state.segments_of(partition)}

    def unread_events(self, partition: TopicIdPartition) -> int:
        """How many events after a partition's snapshot the committed offsets mark as read."""
        return sum(
            self._events.count_between(partition, metadata_partition, offset, self._read_up_to[metadata_partition])
            for (one, metadata_partition), offset in self._offsets.items()
            if one == partition and metadata_partition in self._read_up_to
        )

    @cached_property
    def _state(self) -> ReplayedMetadata:
        return ReplayedMetadata(self._events.as_of(self._offsets))


class MetadataToCheck:
    """The whole of a metadata source, replayed once."""

    def __init__(self, stream: EventStream, stores: Sequence[LocalStore]) -> None:
        events = SegmentEvents(is_described=True)
        read_events(stream, events)
        self.state = ReplayedMetadata(events, keep_deleted=True)
        self.as_of_store: dict[Path, StoreReplay] = {store.path: StoreReplay(store, events) for store in stores}
        self.metadata_partition_of: dict[TopicIdPartition, int] = {}
        """The first that has events of a user partition."""
        self._incarnations: dict[TopicPartition, set[TopicIdPartition]] = defaultdict(set)
        self._topics: dict[str, set[str]] = defaultdict(set)
        self.source: MetadataSource = stream.source
        for partition, metadata_partition in stream.places:
            first = self.metadata_partition_of.get(partition, metadata_partition)
            self.metadata_partition_of[partition] = min(first, metadata_partition)
            self._incarnations[partition.topic, partition.partition].add(partition)
            self._topics[partition.topic_id].add(partition.topic)
        self.findings: list[Finding] = [*stream.findings, *self.state.findings]
        self.metadata_partitions = set(self.source.metadata_partitions())

    @property
    def is_whole(self) -> bool:
        """Whether an unknown id never had an event, as far as the read partitions show."""
        return is_whole(self.findings)

    def segments(self, segment_ids: Sequence[str]) -> dict[str, RemoteLogSegmentMetadata]:
        """Those of some ids that ever had an event that could begin them, deleted ones too, by id."""
        found = self.state.known(self.state.named(segment_ids))
        return {known.metadata.segment_id: known.metadata for _, known in found}

    def end_offset(self, metadata_partition: int) -> int:
        """The offset after the last one read."""
        return self.source.offset_range(metadata_partition).end

    def incarnations(self, topic: str, partition: int) -> list[TopicIdPartition]:
        """The partitions in the metadata under a topic's name; several where it was recreated."""
        return sorted(self._incarnations.get((topic, partition), ()))

    def topics(self, topic_id: str) -> set[str]:
        """The names that the metadata has for a topic id: one, unless something is wrong."""
        return self._topics.get(topic_id, set())

"""What the metadata says about one topic's partitions: read once, then only what was added since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.model.events import (
    EventRecord,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_publisher import NO_BROKER
from tieredctl.ops.metadata.event_reading import selected_records
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.replay import RemotePartitionMetadataStore


class BrokerEvent(NamedTuple):
    """An event that a broker wrote; its time in ms since the epoch."""

    broker_id: int
    metadata_offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as its events describe it."""

    partition: TopicIdPartition
    metadata_partition: int
    delete_state: RemotePartitionDeleteState | None
    """How far its removal has got; None if it never began."""
    segments: Sequence[RemoteLogSegmentMetadata]
    """All, deleted ones included, by start offset."""
    last_broker_event: BrokerEvent | None = None

    @property
    def is_removed(self) -> bool:
        return self.delete_state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED

    @property
    def form(self) -> RecordForm:
        """The form in which its brokers write events: one that they cannot read stops their consumer."""
        return self.segments[-1].form if self.segments else RecordForm.KAFKA

    def unfinished(self) -> list[RemoteLogSegmentMetadata]:
        """The segments that are still to be deleted, or whose deletion did not finish."""
        if self.is_removed:
            return []
        return [one for one in self.segments if one.state is not RemoteLogSegmentState.DELETE_SEGMENT_FINISHED]


@dataclass(slots=True)
class TopicMetadata:
    """The events of one topic id, of all its partitions or of one, as of the last `refresh`."""

    topic_id: str
    partition: int | None
    metadata: FollowedMetadata
    """Of a live cluster."""
    known_topic_ids: set[str] = field(default_factory=set)
    """Of all events that were read."""
    metadata_partitions: int = 0
    """How many partitions the metadata topic has."""
    _store: RemotePartitionMetadataStore = field(
        default_factory=lambda: RemotePartitionMetadataStore(keep_deleted=True)
    )
    _places: dict[TopicIdPartition, int] = field(default_factory=dict)
    _broker_events: dict[TopicIdPartition, BrokerEvent] = field(default_factory=dict)

    def refresh(self) -> None:
        """Reads what is new, up to now.

        Raises TieredctlError as FollowedMetadata does; `metadata-incomplete` also for events in another partition than
        the one that Kafka's partitioner assigns.
        """
        self.metadata.read(self._take)

    def partitions(self) -> list[TopicIdPartition]:
        """Those that have events. Raises TieredctlError `unknown-topic` if none has."""
        known = {*self._store.caches, *self._store.partition_deletes}
        if not known:
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"The metadata has no event of {self._selection}.")
        return sorted(known)

    def state(self, partition: TopicIdPartition) -> PartitionState:
        """The state of one of `partitions`, by its events."""
        return PartitionState(
            partition,
            self._place(partition),
            self._store.partition_deletes.get(partition),
            tuple(known.metadata for known in self._store.segments_of(partition)),
            self._broker_events.get(partition),
        )

    @property
    def _selection(self) -> Selection:
        return Selection(topic_id=self.topic_id, partition=self.partition)

    def _take(self, stream: EventStream) -> Sequence[Finding]:
        self.metadata_partitions = len(stream.source.metadata_partitions())
        self._store.replay(map(self._noted, selected_records(stream, self._selection)))
        self.known_topic_ids |= {partition.topic_id for partition in stream.partitions}
        return [*stream.findings, *self._store.findings]

    def _noted(self, record: EventRecord) -> EventRecord:
        event = record.event
        if isinstance(event, RemoteLogSegmentMetadataSnapshot):
            return record
        partition = event.topic_id_partition
        if record.metadata_partition != self._place(partition):
            here = f"{METADATA_TOPIC}-{record.metadata_partition}"
            message = f"{here} has events of {partition}, which belong in partition {self._place(partition)}."
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message)
        if event.author != NO_BROKER:
            self._broker_events[partition] = BrokerEvent(event.author, record.metadata_offset, record.timestamp_ms)
        return record

    def _place(self, partition: TopicIdPartition) -> int:
        if partition not in self._places:
            self._places[partition] = metadata_partition(
                partition.topic_id, partition.partition, self.metadata_partitions
            )
        return self._places[partition]

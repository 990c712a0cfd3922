"""What the metadata says about one topic's partitions: read once, then only what was added since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import (
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.broker_events import BrokerEvent, last_broker_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata, FollowedReplay
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.segment_events import EventChunk


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
    """The metadata of a live cluster."""
    known_topic_ids: set[str] = field(default_factory=set)
    """The topic ids of all events that were read."""
    metadata_partitions: int = 0
    """How many partitions the metadata topic has."""
    _replay: FollowedReplay = field(init=False)
    _broker_events: dict[TopicIdPartition, BrokerEvent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._replay = FollowedReplay(self.metadata, self._selection.has, keep_deleted=True, note=self._note)

    def refresh(self) -> None:
        """Reads what is new, up to now.

        Raises TieredctlError as FollowedMetadata does; `metadata-incomplete` also for events in another partition than
        the one that Kafka's partitioner assigns.
        """
        self._replay.read(self._judge)

    def partitions(self) -> list[TopicIdPartition]:
        """The partitions that have events. Raises TieredctlError `unknown-topic` if none has."""
        replayed = self._replay.known
        partitions = {*replayed.caches, *replayed.partition_deletes}
        if not partitions:
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"The metadata has no event of {self._selection}.")
        return sorted(partitions)

    def state(self, partition: TopicIdPartition) -> PartitionState:
        """The state of one of `partitions`, by its events."""
        return PartitionState(
            partition,
            self._place(partition),
            self._replay.known.partition_deletes.get(partition),
            tuple(segment.metadata for segment in self._replay.known.segments_of(partition)),
            self._broker_events.get(partition),
        )

    @property
    def _selection(self) -> Selection:
        return Selection.of(topic_id=self.topic_id, partition=self.partition)

    def _note(self, chunk: EventChunk) -> None:
        self._broker_events.update(last_broker_events(chunk, self._selection.has))

    def _judge(self, stream: EventStream) -> Sequence[Finding]:
        self.metadata_partitions = len(stream.source.metadata_partitions())
        self.known_topic_ids |= {partition.topic_id for partition in stream.partitions}
        self._demand_in_place(stream)
        return [*stream.findings, *self._replay.known.findings]

    def _demand_in_place(self, stream: EventStream) -> None:
        misplaced = [
            (here, self._replay.events.first_offset(partition, here), partition)
            for partition, here in stream.places
            if self._selection.has(partition) and here != self._place(partition)
        ]
        if misplaced:
            here, _, partition = min(misplaced)
            message = f"{METADATA_TOPIC}-{here} has events of {partition}, which belong in partition"
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, f"{message} {self._place(partition)}.")

    def _place(self, partition: TopicIdPartition) -> int:
        return metadata_partition(partition.topic_id, partition.partition, self.metadata_partitions)

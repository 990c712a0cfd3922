"""What `__remote_log_metadata` holds: events about segments and partitions (KIP-405, "Message Format")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from tieredctl.model.ids import TopicIdPartition


class RemoteLogSegmentState(IntEnum):
    """Life of a segment in remote storage (Kafka's RemoteLogSegmentState, ids as on the wire)."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


STORED_STATES = (RemoteLogSegmentState.COPY_SEGMENT_FINISHED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
"""The states of a segment that is in remote storage: whole, though its deletion may have begun. Kafka's retention
counts these."""
DELETION_STATES = (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
"""The states of a segment that nobody reads any more."""


class RemotePartitionDeleteState(IntEnum):
    """Progress of removing a whole partition (Kafka's RemotePartitionDeleteState)."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


class RecordForm(Enum):
    """How an event is encoded."""

    KAFKA = "kafka"
    """Kafka 3.6 and later."""
    KAFKA_BEFORE_3_6 = "kafka-before-3.6"
    """Kafka 3.0 to 3.5: the same without CustomMetadata, under the same version number."""
    KIP_405 = "kip405"
    """The KIP's own text: non-flexible, with a leader epoch where Kafka has a broker id."""

    @property
    def dialect(self) -> str:
        """`kip405`, or `kafka` for anything that a Kafka release wrote."""
        return "kip405" if self is RecordForm.KIP_405 else "kafka"


@dataclass(frozen=True, slots=True)
class TaggedField:
    """A tagged field that this version does not know. `path` names the struct that carries it:
    empty for the message itself, else as in `RemoteLogSegmentId.TopicIdPartition` or `SegmentLeaderEpochs[2]`."""

    path: str
    tag: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """The metadata of a segment.

    `start_offset` and `end_offset` are both inclusive; times are milliseconds since the epoch; size is in bytes.
    `segment_leader_epochs` holds (leader epoch, first offset of it in this segment), ascending.
    `author` is the broker id, or in the KIP's dialect the leader epoch.
    """

    segment_id: str
    start_offset: int
    end_offset: int
    author: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: tuple[tuple[int, int], ...]
    segment_size_in_bytes: int
    custom_metadata: bytes | None = None
    state: RemoteLogSegmentState = RemoteLogSegmentState.COPY_SEGMENT_STARTED
    txn_idx_empty: bool = False
    form: RecordForm = RecordForm.KAFKA
    tagged_fields: tuple[TaggedField, ...] = ()

    @property
    def known_size(self) -> int | None:
        """The segment's size; None where it is negative: Kafka takes any number, and it may be damage."""
        return None if self.segment_size_in_bytes < 0 else self.segment_size_in_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadata(_Segment):
    """A segment, as it was when its copy began, or as replay has it now."""

    topic_id_partition: TopicIdPartition

    def epoch_ranges(self) -> list[tuple[int, int, int]]:
        """(leader epoch, first offset, last offset) for each epoch in this segment, offsets inclusive."""
        epochs = self.segment_leader_epochs
        lasts = [offset - 1 for _, offset in epochs[1:]] + [self.end_offset]
        return [(epoch, first, last) for (epoch, first), last in zip(epochs, lasts, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataUpdate:
    """A segment's next state. Replaces the broker id, event time, state and custom metadata known so far."""

    topic_id_partition: TopicIdPartition
    segment_id: str
    author: int
    event_timestamp_ms: int
    state: RemoteLogSegmentState
    custom_metadata: bytes | None = None
    form: RecordForm = RecordForm.KAFKA
    tagged_fields: tuple[TaggedField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadata:
    """Progress of a partition's removal. No released broker writes it; tools and the KIP's remover do."""

    topic_id_partition: TopicIdPartition
    author: int
    event_timestamp_ms: int
    state: RemotePartitionDeleteState
    form: RecordForm = RecordForm.KAFKA
    tagged_fields: tuple[TaggedField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataSnapshot(_Segment):
    """A segment in a local `remote_log_snapshot` file, which names topic and partition elsewhere."""


MetadataEvent = (
    RemoteLogSegmentMetadata
    | RemoteLogSegmentMetadataUpdate
    | RemotePartitionDeleteMetadata
    | RemoteLogSegmentMetadataSnapshot
)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event and where the metadata topic holds it. `timestamp_ms` is the record's own."""

    metadata_partition: int
    metadata_offset: int
    timestamp_ms: int
    event: MetadataEvent

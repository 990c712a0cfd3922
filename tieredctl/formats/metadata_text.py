"""Events as text: what Kafka's RemoteLogMetadataFormatter prints, and the form that KIP-405 describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
)


@dataclass(frozen=True, slots=True)
class KafkaText:
    """The fields that a release's toString shows: CustomMetadata since 3.6, TxnIdxEmpty since 4.0."""

    custom_metadata: bool = True
    txn_idx_empty: bool = True


def kafka_line(record: EventRecord, text: KafkaText) -> str:
    """One line as Kafka's console consumer prints it with RemoteLogMetadataFormatter, without the line end."""
    return (
        f"partition: {record.metadata_partition}, offset: {record.metadata_offset}, "
        f"value: {event_text(record.event, text)}"
    )


def event_text(event: MetadataEvent, text: KafkaText) -> str:
    """The event's Java toString()."""
    return _TEXTS[type(event)](event, text)


def custom_metadata_text(custom_metadata: bytes | None) -> str:
    """Java's Optional around Kafka's CustomMetadata, which shows only its length."""
    if custom_metadata is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(custom_metadata)} bytes}}]"


def _segment_id(event: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate) -> str:
    return f"RemoteLogSegmentId{{topicIdPartition={event.topic_id_partition}, id={event.segment_id}}}"


def _epochs(epochs: tuple[tuple[int, int], ...]) -> str:
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in epochs) + "}"


def _custom(event: MetadataEvent, text: KafkaText) -> str:
    if not text.custom_metadata or isinstance(event, RemotePartitionDeleteMetadata):
        return ""
    return f"customMetadata={custom_metadata_text(event.custom_metadata)}, "


def _txn_idx_empty(event: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot, text: KafkaText) -> str:
    return f", txnIdxEmpty={'true' if event.txn_idx_empty else 'false'}" if text.txn_idx_empty else ""


def _metadata(event: RemoteLogSegmentMetadata, text: KafkaText) -> str:
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(event)}, startOffset={event.start_offset}, "
        f"endOffset={event.end_offset}, brokerId={event.author}, maxTimestampMs={event.max_timestamp_ms}, "
        f"eventTimestampMs={event.event_timestamp_ms}, segmentLeaderEpochs={_epochs(event.segment_leader_epochs)}, "
        f"segmentSizeInBytes={event.segment_size_in_bytes}, {_custom(event, text)}state={event.state.name}"
        f"{_txn_idx_empty(event, text)}}}"
    )


def _update(event: RemoteLogSegmentMetadataUpdate, text: KafkaText) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(event)}, {_custom(event, text)}"
        f"state={event.state.name}, eventTimestampMs={event.event_timestamp_ms}, brokerId={event.author}}}"
    )


def _partition_delete(event: RemotePartitionDeleteMetadata, _: KafkaText) -> str:
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={event.topic_id_partition}, state={event.state.name}, "
        f"eventTimestampMs={event.event_timestamp_ms}, brokerId={event.author}}}"
    )


def _snapshot(event: RemoteLogSegmentMetadataSnapshot, text: KafkaText) -> str:
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={event.segment_id}, startOffset={event.start_offset}, "
        f"endOffset={event.end_offset}, maxTimestampMs={event.max_timestamp_ms}, "
        f"segmentLeaderEpochs={_epochs(event.segment_leader_epochs)}, "
        f"segmentSizeInBytes={event.segment_size_in_bytes}, {_custom(event, text)}state={event.state.name}"
        f"{_txn_idx_empty(event, text)}}}"
    )


_TEXTS: dict[type[MetadataEvent], Callable[..., str]] = {
    RemoteLogSegmentMetadata: _metadata,
    RemoteLogSegmentMetadataUpdate: _update,
    RemotePartitionDeleteMetadata: _partition_delete,
    RemoteLogSegmentMetadataSnapshot: _snapshot,
}

"""Domain values as the JSON that every command shows: Kafka's own names, in camelCase."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from tieredctl.model.events import (
    EventRecord,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemotePartitionDeleteMetadata,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.cache import KnownSegment

Document = dict[str, Any]


def partition_document(partition: TopicIdPartition) -> Document:
    """The fields that name a partition."""
    return {"topic": partition.topic, "topicId": partition.topic_id, "partition": partition.partition}


def epochs_document(epochs: tuple[tuple[int, int], ...]) -> list[Document]:
    """Leader epochs with their first offsets (inclusive)."""
    return [{"leaderEpoch": epoch, "offset": offset} for epoch, offset in epochs]


def event_document(record: EventRecord) -> Document:
    """An event: its type, the dialect it was written in, and its fields."""
    event = record.event
    author = "leaderEpoch" if event.form is RecordForm.KIP_405 else "brokerId"
    document: Document = {"type": type(event).__name__, "dialect": event.form.dialect}
    if not isinstance(event, RemoteLogSegmentMetadataSnapshot):
        document |= partition_document(event.topic_id_partition)
    if not isinstance(event, RemotePartitionDeleteMetadata):
        document["segmentId"] = event.segment_id
    if isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot):
        document |= _segment_fields(event)
    document |= {author: event.author, "eventTimestampMs": event.event_timestamp_ms, "state": event.state.name}
    if not isinstance(event, RemotePartitionDeleteMetadata):
        document["customMetadata"] = _base64(event.custom_metadata)
    if event.tagged_fields:
        document["taggedFields"] = [
            {"path": field.path, "tag": field.tag, "data": _base64(field.data)} for field in event.tagged_fields
        ]
    return document | {"metadataPartition": record.metadata_partition, "metadataOffset": record.metadata_offset}


def segment_document(segment: KnownSegment) -> Document:
    """A segment after replay. `metadataOffset` is that of its last event."""
    return {
        **database_segment_document(segment.metadata),
        "metadataPartition": segment.metadata_partition,
        "metadataOffset": segment.metadata_offset,
    }


def database_segment_document(metadata: RemoteLogSegmentMetadata) -> Document:
    """A segment as a database has it, which keeps no events."""
    return {
        **partition_document(metadata.topic_id_partition),
        "segmentId": metadata.segment_id,
        **_segment_fields(metadata),
        "leaderEpoch" if metadata.form is RecordForm.KIP_405 else "brokerId": metadata.author,
        "eventTimestampMs": metadata.event_timestamp_ms,
        "state": metadata.state.name,
        "customMetadata": _base64(metadata.custom_metadata),
    }


def _segment_fields(metadata: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot) -> Document:
    return {
        "startOffset": metadata.start_offset,
        "endOffset": metadata.end_offset,
        "maxTimestampMs": metadata.max_timestamp_ms,
        "segmentLeaderEpochs": epochs_document(metadata.segment_leader_epochs),
        "segmentSizeInBytes": metadata.segment_size_in_bytes,
        "txnIdxEmpty": metadata.txn_idx_empty,
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")

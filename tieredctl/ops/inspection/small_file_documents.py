"""Files that are read whole, as documents: fields, then entries, in Kafka's names."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import CHECKPOINT_VERSION, LEADER_EPOCH_ENTRY, OFFSET_ENTRY, read_checkpoint
from tieredctl.formats.clean_shutdown import read_clean_shutdown
from tieredctl.formats.committed_offsets import read_committed_offsets
from tieredctl.formats.file_names import (
    SegmentFileName,
    parse_index_cache_file_name,
    parse_segment_file_name,
)
from tieredctl.formats.flat_file import FLAT_FILE_MAGIC, StoredDeleteState, StoredEntry, read_flat_file
from tieredctl.formats.indexes import (
    ABORTED_TRANSACTION,
    ABORTED_TRANSACTION_VERSION,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from tieredctl.formats.java_properties import read_properties
from tieredctl.formats.kafka_json import base64_text, json_document
from tieredctl.formats.meta_properties import ZOOKEEPER_VERSION, read_meta_properties
from tieredctl.formats.partition_metadata import read_partition_metadata
from tieredctl.formats.producer_snapshot import PRODUCER_ENTRY, PRODUCER_SNAPSHOT_HEADER, read_producer_snapshot
from tieredctl.formats.quorum_state import read_quorum_state
from tieredctl.formats.remote_log_snapshot import REMOTE_LOG_SNAPSHOT_VERSION, read_remote_log_snapshot
from tieredctl.formats.schema import Struct
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.formats.wire import reader
from tieredctl.model.counted import counted
from tieredctl.model.events import RecordForm, RemoteLogSegmentMetadataSnapshot
from tieredctl.ops.documents import Document, epochs_document
from tieredctl.ops.inspection.file_kinds import FileKind

FileDocuments = tuple[Document, Iterator[Document]]
"""A file's fields and its entries."""


def small_file(kind: FileKind, name: str, data: bytes) -> FileDocuments:
    """The documents of a file of any kind that `BATCH_FILES` does not have. Raises DecodeError where it is damaged."""
    if kind in _SEGMENT_FILES:
        return _SEGMENT_FILES[kind](parse_segment_file_name(name) or parse_index_cache_file_name(name), data)
    return _FILES[kind](data)


def _offset_index(segment: SegmentFileName | None, data: bytes) -> FileDocuments:
    return _relative_index(segment, data, OFFSET_INDEX_ENTRY, read_offset_index(data))


def _time_index(segment: SegmentFileName | None, data: bytes) -> FileDocuments:
    return _relative_index(segment, data, TIME_INDEX_ENTRY, read_time_index(data))


def _relative_index(
    segment: SegmentFileName | None, data: bytes, schema: Struct, entries: Sequence[Sequence[int]]
) -> FileDocuments:
    """An index whose offsets count from the base offset in the file's name."""
    base_offset = segment.offset if segment else None
    entries_end = len(entries) * struct.calcsize(schema.fixed_format)
    if _is_remote(segment) and len(data) > entries_end:
        message = f"its last {len(data) - entries_end} bytes are zeros, which only an active segment's index has"
        raise DecodeError(message, entries_end)
    fields = {
        "baseOffset": base_offset,
        "segmentId": segment.segment_id if segment else None,
        "entryCount": len(entries),
        "preallocatedBytes": len(data) - entries_end,
    }
    documents = (_document(schema, entry) for entry in entries)
    return fields, (
        document | {"offset": None if base_offset is None else base_offset + document["relativeOffset"]}
        for document in documents
    )


def _transaction_index(segment: SegmentFileName | None, data: bytes) -> FileDocuments:
    entries = read_transaction_index(data)
    fields = {
        "baseOffset": segment.offset if segment else None,
        "segmentId": segment.segment_id if segment else None,
        "entryCount": len(entries),
    }
    return fields, (_document(ABORTED_TRANSACTION, (ABORTED_TRANSACTION_VERSION, *entry)) for entry in entries)


def _producer_snapshot(segment: SegmentFileName | None, data: bytes) -> FileDocuments:
    entries = read_producer_snapshot(data)
    header, _ = reader(PRODUCER_SNAPSHOT_HEADER)(data, 0, len(data))
    # In remote storage the name has the segment's base offset, not the snapshot's own.
    offset = segment.offset if segment and segment.segment_id is None else None
    return {"offset": offset, **header}, (_document(PRODUCER_ENTRY, entry) for entry in entries)


def _leader_epoch_checkpoint(segment: SegmentFileName | None, data: bytes) -> FileDocuments:
    if _is_remote(segment):
        leader_epoch_entries(data)
    return _checkpoint_lines(LEADER_EPOCH_ENTRY, data)


def _offset_checkpoint(data: bytes) -> FileDocuments:
    return _checkpoint_lines(OFFSET_ENTRY, data)


def _checkpoint_lines(schema: Struct, data: bytes) -> FileDocuments:
    entries = read_checkpoint(schema, data)
    return {"version": CHECKPOINT_VERSION, "entryCount": len(entries)}, iter(entries)


def _committed_offsets(data: bytes) -> FileDocuments:
    form, offsets = read_committed_offsets(data)
    fields = {"dialect": form.value, "entryCount": len(offsets)}
    return fields, ({"partition": partition, "offset": offset} for partition, offset in offsets.items())


def _remote_log_snapshot(data: bytes) -> FileDocuments:
    snapshot = read_remote_log_snapshot(data)
    if snapshot is None:
        nothing = dict.fromkeys(("version", "metadataPartition", "metadataPartitionOffset"))
        return {**nothing, "entryCount": 0}, iter(())
    fields = {
        "version": REMOTE_LOG_SNAPSHOT_VERSION,
        "metadataPartition": snapshot.metadata_partition,
        "metadataPartitionOffset": snapshot.metadata_partition_offset,
        "entryCount": len(snapshot.segments),
    }
    return fields, (_stored_segment(segment) for segment in snapshot.segments)


def _flat_file(data: bytes) -> FileDocuments:
    flat_file = read_flat_file(data)
    fields = {
        "magic": FLAT_FILE_MAGIC,
        "topic": flat_file.topic,
        "topicId": flat_file.topic_id,
        "metadataTopicOffset": flat_file.metadata_topic_offset,
        "entryCount": len(flat_file.entries),
    }
    return fields, (_stored_entry(entry) for entry in flat_file.entries)


def _meta_properties(data: bytes) -> FileDocuments:
    meta = read_meta_properties(data)
    fields = {
        "version": meta.version,
        "clusterId": meta.cluster_id,
        "brokerId" if meta.version == ZOOKEEPER_VERSION else "nodeId": meta.node_id,
        "directoryId": meta.directory_id,
    }
    return fields, ({"key": key, "value": value} for key, value in read_properties(data).items())


def _partition_metadata(data: bytes) -> FileDocuments:
    metadata = read_partition_metadata(data)
    return {"version": metadata.version, "topicId": metadata.topic_id}, iter(())


def _quorum_state(data: bytes) -> FileDocuments:
    state = read_quorum_state(data)
    document = state.document()
    voters = document.pop("currentVoters", None)
    return {"version": state.version, **document}, iter(voters or ())


def _clean_shutdown(data: bytes) -> FileDocuments:
    shutdown = read_clean_shutdown(data)
    return {"version": shutdown.version, "brokerEpoch": shutdown.broker_epoch}, iter(())


def _lock(data: bytes) -> FileDocuments:
    if data:
        raise DecodeError(f"it has {counted(len(data), 'byte')}, but a broker's lock file is empty", 0)
    return {}, iter(())


def _is_remote(segment: SegmentFileName | None) -> bool:
    """Whether a file was copied with a segment: only then does its name have the segment's id."""
    return segment is not None and segment.segment_id is not None


# The content of these depends on the file's name.
_SEGMENT_FILES: Mapping[FileKind, Callable[[SegmentFileName | None, bytes], FileDocuments]] = {
    FileKind.OFFSET_INDEX: _offset_index,
    FileKind.TIME_INDEX: _time_index,
    FileKind.TRANSACTION_INDEX: _transaction_index,
    FileKind.PRODUCER_SNAPSHOT: _producer_snapshot,
    FileKind.LEADER_EPOCH_CHECKPOINT: _leader_epoch_checkpoint,
}
_FILES: Mapping[FileKind, Callable[[bytes], FileDocuments]] = {
    FileKind.COMMITTED_OFFSETS: _committed_offsets,
    FileKind.REMOTE_LOG_SNAPSHOT: _remote_log_snapshot,
    FileKind.FLAT_FILE: _flat_file,
    FileKind.CHECKPOINT: _offset_checkpoint,
    FileKind.META_PROPERTIES: _meta_properties,
    FileKind.PARTITION_METADATA: _partition_metadata,
    FileKind.QUORUM_STATE: _quorum_state,
    FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
    FileKind.LOCK: _lock,
}


def _document(schema: Struct, values: Sequence[Any]) -> Document:
    return json_document(schema, {field.name: value for field, value in zip(schema.fields, values, strict=True)})


def _stored_entry(entry: StoredEntry) -> Document:
    if isinstance(entry, StoredDeleteState):
        return {
            "type": "DeletePartitionState",
            "leaderEpoch": entry.epoch,
            "eventTimestampMs": entry.event_timestamp_ms,
            "state": entry.state.name,
        }
    return _stored_segment(entry)


def _stored_segment(segment: RemoteLogSegmentMetadataSnapshot) -> Document:
    document: Document = {
        "type": "RemoteLogSegmentMetadataSnapshot",
        "dialect": segment.form.dialect,
        "segmentId": segment.segment_id,
        "startOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "leaderEpoch" if segment.form is RecordForm.KIP_405 else "brokerId": segment.author,
        "maxTimestampMs": segment.max_timestamp_ms,
        "eventTimestampMs": segment.event_timestamp_ms,
        "segmentLeaderEpochs": epochs_document(segment.segment_leader_epochs),
        "segmentSizeInBytes": segment.segment_size_in_bytes,
        "customMetadata": None if segment.custom_metadata is None else base64_text(segment.custom_metadata),
        "state": segment.state.name,
        "txnIdxEmpty": segment.txn_idx_empty,
    }
    if segment.tagged_fields:
        document["taggedFields"] = [
            {"path": field.path, "tag": field.tag, "data": base64_text(field.data)} for field in segment.tagged_fields
        ]
    return document

"""Metadata records as an Arrow table: unchanged, with columns of their content."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import binary_array, flag_array, number_array, text_array
from tieredctl.formats.columns import NULL, Lists, Spans
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_export import METADATA_OFFSET, METADATA_PARTITION, TIMESTAMP_MS, TOMBSTONE_KEY, VALUE
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.formats.uuid_columns import uuid_columns
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.ops.documents import Document, event_document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.format import COLUMNS_FROM

_RECORD_FIELDS = (
    pa.field(METADATA_PARTITION, pa.int32(), nullable=False),
    pa.field(METADATA_OFFSET, pa.int64(), nullable=False),
    pa.field(TIMESTAMP_MS, pa.int64(), nullable=False),
    pa.field(VALUE, pa.binary()),
    pa.field(TOMBSTONE_KEY, pa.binary()),
)
_EVENT_SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "dialect": pa.string(),
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "segmentId": pa.string(),
        "startOffset": pa.int64(),
        "endOffset": pa.int64(),
        "maxTimestampMs": pa.int64(),
        "segmentLeaderEpochs": pa.list_(pa.struct({"leaderEpoch": pa.int32(), "offset": pa.int64()})),
        "segmentSizeInBytes": pa.int32(),
        "txnIdxEmpty": pa.bool_(),
        "brokerId": pa.int32(),
        "leaderEpoch": pa.int32(),
        "eventTimestampMs": pa.int64(),
        "state": pa.string(),
        "customMetadata": pa.binary(),
    }
)
RECORD_TABLE_SCHEMA = pa.schema([*_RECORD_FIELDS, *_EVENT_SCHEMA])
"""Field names are those of `event_document`; customMetadata is bytes here, and unknown tagged fields are in the value
alone."""

_NUMBERS = {
    "StartOffset": "startOffset",
    "EndOffset": "endOffset",
    "MaxTimestampMs": "maxTimestampMs",
    "SegmentSizeInBytes": "segmentSizeInBytes",
    "BrokerId": "brokerId",
    "EventTimestampMs": "eventTimestampMs",
}
_TYPE_NAMES = ("RemoteLogSegmentMetadata", "RemoteLogSegmentMetadataUpdate", "RemotePartitionDeleteMetadata")


def record_table(stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> pa.Table:
    """A chunk's records in their order. What cannot be decoded becomes a finding of the stream, its columns null."""
    offsets, timestamps, starts, ends = (
        np.asarray(column, np.int64) for column in (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
    )
    data = np.frombuffer(chunk.buffer, np.uint8)
    records = [
        number_array(np.full(len(offsets), metadata_partition, np.int32)),
        number_array(offsets),
        number_array(timestamps),
        _binary(data, Spans(starts, ends)),
        _tombstone_keys(chunk, offsets),
    ]
    groups: list[EventGroup] = []
    left: Ints = np.arange(len(chunk))
    if len(chunk) >= COLUMNS_FROM:
        groups, left = stream.decode_columns(metadata_partition, data, starts, ends)
    rows = [*(group.rows for group in groups), left]
    tables = [_group_table(data, group) for group in groups]
    if len(left) or not tables:
        tables.append(_row_table(stream, metadata_partition, chunk, left))
    order = np.argsort(np.concatenate(rows), kind="stable")
    events = pa.concat_tables(tables).take(number_array(order)).combine_chunks()
    return pa.Table.from_arrays([*records, *events.columns], schema=RECORD_TABLE_SCHEMA)


def _tombstone_keys(chunk: RecordChunk, offsets: Ints) -> pa.BinaryArray:
    if not chunk.tombstone_keys:
        return pa.nulls(len(chunk), pa.binary())
    return pa.array([chunk.tombstone_keys.get(offset) for offset in offsets.tolist()], pa.binary())


def _row_table(stream: EventStream, metadata_partition: int, chunk: RecordChunk, rows: Ints) -> pa.Table:
    documents = []
    for row in rows.tolist():
        decoded = [_row(event_document(record)) for record in stream.decode(metadata_partition, chunk, [row])]
        documents += decoded or [{}]
    return pa.Table.from_pylist(documents, _EVENT_SCHEMA)


def _row(document: Document) -> Document:
    custom = document.get("customMetadata")
    return document | {"customMetadata": None if custom is None else b64decode(custom)}


def _group_table(data: NDArray[np.uint8], group: EventGroup) -> pa.Table:
    columns = group.columns
    arrays: dict[str, Any] = {
        "type": _repeated(_TYPE_NAMES[group.api_key], len(group.rows)),
        "dialect": _repeated(group.form.dialect, len(group.rows)),
        **_partition_columns(group),
        **{name: number_array(columns[path]) for path, name in _NUMBERS.items() if path in columns},
    }
    if group.api_key == PARTITION_DELETE:
        arrays["state"] = _names(columns["RemotePartitionDeleteState"], RemotePartitionDeleteState)
    else:
        arrays["state"] = _names(columns["RemoteLogSegmentState"], RemoteLogSegmentState)
        arrays["segmentId"] = uuid_columns(columns["RemoteLogSegmentId.Id"]).text_array()
    if "CustomMetadata" in columns:
        arrays["customMetadata"] = _binary(data, columns["CustomMetadata"])
    if group.api_key == SEGMENT_METADATA:
        arrays["segmentLeaderEpochs"] = _epochs(columns["SegmentLeaderEpochs"])
        none_said = np.zeros(len(group.rows), np.bool_)
        arrays["txnIdxEmpty"] = flag_array(columns.get("TxnIndexEmpty", none_said).astype(np.bool_))
    absent = {field.name: pa.nulls(len(group.rows), field.type) for field in _EVENT_SCHEMA}
    return pa.table(absent | arrays, _EVENT_SCHEMA)


def _partition_columns(group: EventGroup) -> dict[str, Any]:
    index = number_array(group.partition_index)
    numbers = np.array([partition.partition for partition in group.partitions], np.int32)
    return {
        "topic": text_array([partition.topic for partition in group.partitions]).take(index),
        "topicId": text_array([partition.topic_id for partition in group.partitions]).take(index),
        "partition": number_array(numbers).take(index),
    }


def _repeated(text: str, count: int) -> pa.StringArray:
    return text_array([text]).take(number_array(np.zeros(count, np.int8)))


def _names(values: NDArray[Any], kind: Any) -> pa.StringArray:
    return text_array([state.name for state in kind]).take(number_array(values.astype(np.int8)))


def _epochs(epochs: Lists) -> pa.ListArray:
    pairs = pa.StructArray.from_arrays(
        [number_array(epochs.elements["LeaderEpoch"]), number_array(epochs.elements["Offset"])],
        ["leaderEpoch", "offset"],
    )
    return pa.ListArray.from_arrays(number_array(epochs.bounds.astype(np.int32)), pairs)


def _binary(data: NDArray[np.uint8], spans: Spans) -> pa.BinaryArray:
    null = spans.starts == NULL
    if not null.any():
        return binary_array(data, spans.starts, spans.ends)
    values = binary_array(data, np.where(null, spans.ends, spans.starts), spans.ends)
    return pc.if_else(flag_array(null), pa.nulls(1, pa.binary())[0], values)

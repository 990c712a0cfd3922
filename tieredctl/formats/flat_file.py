"""KIP-405's flat-file store of a user topic partition's remote log metadata, which no release ever wrote.

Source: KIP-405, "Internal flat-file store format of remote log metadata". Where its text leaves something open, the
choice is made here: magic 0, a topic name with a 16-bit length, a zigzag metadata-topic-offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.metadata_schemas import (
    KIP_405_STORED_DELETE_FIELDS,
    KIP_405_STORED_SEGMENT_FIELDS,
)
from tieredctl.formats.schema import Field, Length, Primitive, Struct
from tieredctl.formats.varints import Buffer, read_unsigned_varint, read_varlong, unsigned_varint, varlong
from tieredctl.formats.wire import Values, read_whole, reader, writer
from tieredctl.model.events import (
    RecordForm,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import uuid_bytes, uuid_text

FLAT_FILE_MAGIC = 0
ENTRY_VERSION = 0
STORED_SEGMENT, STORED_DELETE_STATE = range(2)
"""The types of an entry."""

TOPIC = Struct("FlatFileTopic", (Field("topic-name", Length.STRING), Field("topic-id", Primitive.UUID)))
STORED_SCHEMAS = {
    STORED_SEGMENT: Struct("RemoteLogSegmentMetadataRecordStored", KIP_405_STORED_SEGMENT_FIELDS),
    STORED_DELETE_STATE: Struct("DeletePartitionStateRecord", KIP_405_STORED_DELETE_FIELDS),
}


class StoredDeleteState(NamedTuple):
    """How far the removal of the file's partition went; the time is in ms."""

    epoch: int
    event_timestamp_ms: int
    state: RemotePartitionDeleteState


StoredEntry = RemoteLogSegmentMetadataSnapshot | StoredDeleteState


class FlatFile(NamedTuple):
    """Entries as of an offset of the metadata topic's partition."""

    topic: str
    topic_id: str
    metadata_topic_offset: int
    entries: Sequence[StoredEntry]


def read_flat_file(data: Buffer) -> FlatFile:
    """What the file holds. Raises DecodeError."""
    end = len(data)
    magic, position = read_unsigned_varint(data, 0, end)
    if magic != FLAT_FILE_MAGIC:
        raise DecodeError(f"flat file has magic {magic}, not {FLAT_FILE_MAGIC}", 0)
    topic, position = reader(TOPIC)(data, position, end)
    offset, position = read_varlong(data, position, end)
    entries = []
    while position < end:
        start = position
        length, position = read_unsigned_varint(data, position, end)
        if length > end - position:
            raise DecodeError(f"entry claims {length} bytes where {end - position} are left", start)
        entries.append(_read_entry(data, position, position + length))
        position += length
    return FlatFile(topic["topic-name"], uuid_text(topic["topic-id"]), offset, entries)


def encode_flat_file(flat_file: FlatFile) -> bytes:
    """The file's bytes; entries must have the KIP's form."""
    topic = {"topic-name": flat_file.topic, "topic-id": uuid_bytes(flat_file.topic_id)}
    parts = [unsigned_varint(FLAT_FILE_MAGIC), writer(TOPIC)(topic), varlong(flat_file.metadata_topic_offset)]
    for entry in flat_file.entries:
        encoded = _encode_entry(entry)
        parts += (unsigned_varint(len(encoded)), encoded)
    return b"".join(parts)


def _read_entry(data: Buffer, start: int, end: int) -> StoredEntry:
    kind, position = read_unsigned_varint(data, start, end)
    version, position = read_unsigned_varint(data, position, end)
    if kind not in STORED_SCHEMAS or version != ENTRY_VERSION:
        raise DecodeError(f"unknown entry of type {kind}, version {version}", start)
    try:
        values = read_whole(STORED_SCHEMAS[kind], memoryview(data)[position:end])
    except DecodeError as error:
        raise DecodeError(error.reason, position + error.position) from None
    try:
        return _stored_segment(values) if kind == STORED_SEGMENT else _stored_delete_state(values)
    except ValueError as error:  # a number that is not a state's
        raise DecodeError(str(error), position) from None


def _stored_segment(values: Values) -> RemoteLogSegmentMetadataSnapshot:
    epochs = [(element["LeaderEpoch"], element["Offset"]) for element in values["SegmentLeaderEpochs"]]
    return RemoteLogSegmentMetadataSnapshot(
        segment_id=uuid_text(values["SegmentId"]),
        start_offset=values["StartOffset"],
        end_offset=values["EndOffset"],
        author=values["LeaderEpoch"],
        max_timestamp_ms=values["MaxTimestamp"],
        event_timestamp_ms=values["EventTimestamp"],
        segment_leader_epochs=tuple(epochs),
        segment_size_in_bytes=values["SegmentSizeInBytes"],
        state=RemoteLogSegmentState(values["RemoteLogSegmentState"]),
        form=RecordForm.KIP_405,
    )


def _stored_delete_state(values: Values) -> StoredDeleteState:
    state = RemotePartitionDeleteState(values["RemotePartitionDeleteState"])
    return StoredDeleteState(values["Epoch"], values["EventTimestamp"], state)


def _encode_entry(entry: StoredEntry) -> bytes:
    if isinstance(entry, StoredDeleteState):
        kind, values = STORED_DELETE_STATE, _delete_state_values(entry)
    else:
        kind, values = STORED_SEGMENT, _segment_values(entry)
    return unsigned_varint(kind) + unsigned_varint(ENTRY_VERSION) + writer(STORED_SCHEMAS[kind])(values)


def _delete_state_values(entry: StoredDeleteState) -> Values:
    return {
        "Epoch": entry.epoch,
        "EventTimestamp": entry.event_timestamp_ms,
        "RemotePartitionDeleteState": entry.state,
    }


def _segment_values(segment: RemoteLogSegmentMetadataSnapshot) -> Values:
    epochs = [{"LeaderEpoch": epoch, "Offset": offset} for epoch, offset in segment.segment_leader_epochs]
    return {
        "SegmentId": uuid_bytes(segment.segment_id),
        "StartOffset": segment.start_offset,
        "EndOffset": segment.end_offset,
        "LeaderEpoch": segment.author,
        "MaxTimestamp": segment.max_timestamp_ms,
        "EventTimestamp": segment.event_timestamp_ms,
        "SegmentLeaderEpochs": epochs,
        "SegmentSizeInBytes": segment.segment_size_in_bytes,
        "RemoteLogSegmentState": segment.state,
    }

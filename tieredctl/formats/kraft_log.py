"""Segments of `__cluster_metadata-0`, the controllers' log (KIP-595, KIP-631).

Records of `__cluster_metadata`: a cluster's topics, partitions, settings, nodes, features (KIP-631).

Their schemas are Kafka's own (`message_json.py`). What a later release added, a type or a version, is framed and kept
as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import ControlRecord, decode_control_record
from tieredctl.formats.event_frame import FRAME_VERSION, frame
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.message_json import Message, message
from tieredctl.formats.record_batches import BatchHeader, Record, read_records
from tieredctl.formats.schema import Struct
from tieredctl.formats.varints import Buffer, read_unsigned_varint
from tieredctl.formats.wire import Values, whole_reader, writer


class KraftLogRecord(NamedTuple):
    """A record of the metadata log, or of a snapshot, where offsets count from 0 in the file and the timestamp is when
    the snapshot was written. Times are milliseconds; `batch_position` is a byte of the file."""

    offset: int
    epoch: int
    """The leader's when it appended the record."""
    timestamp: int
    batch_position: int
    content: ControlRecord | KraftRecord


def batch_records(position: int, header: BatchHeader, batch: Buffer) -> Iterator[KraftLogRecord | Damage]:
    """The records of a sound batch at a position of the file; for each that cannot be decoded, a damage."""
    try:
        for record in read_records(batch, 0, header):
            try:
                yield _decoded(position, header, record)
            except DecodeError as error:
                yield undecodable(position, header, error)
    except DecodeError as error:
        yield undecodable(position, header, error)


def demanded_records(position: int, header: BatchHeader, batch: Buffer) -> Iterator[KraftLogRecord]:
    """The records of a sound batch at a position of the file. Raises DecodeError, with that position, for one that
    cannot be decoded."""
    for record in batch_records(position, header, batch):
        if isinstance(record, Damage):
            raise DecodeError(record.reason, record.position)
        yield record


def sound_batches(
    chunks: Iterable[bytes], size: int, base_offset: int | None = None
) -> Iterator[tuple[int, BatchHeader, memoryview] | Damage]:
    """The position in the file, header and bytes of each sound batch, and the damage between them."""
    for part in scan_log(chunks, size, OneByOne(), base_offset):
        if isinstance(part, Damage):
            yield part
            continue
        view = memoryview(part.buffer)
        for position, header in zip(part.positions, part.headers, strict=True):
            yield part.file_position + position, header, view[position : position + header.size]


def _decoded(position: int, header: BatchHeader, record: Record) -> KraftLogRecord:
    """A record of the batch at a position of the file. Raises DecodeError."""
    content = decode_control_record(record) if header.is_control else decode_kraft_record(record.value or b"")
    return KraftLogRecord(record.offset, header.partition_leader_epoch, record.timestamp, position, content)


def undecodable(position: int, header: BatchHeader, error: DecodeError) -> Damage:
    """The damage that a record which cannot be decoded makes of the sound batch at a position of the file."""
    return Damage(position, position + header.size, f"{error.reason}, in a record of the batch", header)


class KraftRecordType(IntEnum):
    """The apiKeys of the metadata log's records (Kafka's MetadataRecordType)."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27
    CLEAR_ELR = 28

    @property
    def kafka_name(self) -> str:
        """The name as dump-log prints it."""
        return f"{self.name}_RECORD"

    @property
    def message(self) -> Message:
        return message(_file_name(self))


def _file_name(kind: KraftRecordType) -> str:
    if kind is KraftRecordType.ZK_MIGRATION_STATE:
        return "ZkMigrationRecord"  # its name is ZkMigrationStateRecord
    return kind.name.title().replace("_", "") + "Record"


_TYPES = {int(kind): kind for kind in KraftRecordType}
_SCHEMAS: dict[tuple[int, int], Struct] = {}
"""Those that were needed; what is not known is not kept."""


def kraft_schema(api_key: int, version: int) -> Struct | None:
    """What a record's payload follows; None where the apiKey or its version is not known here."""
    schema = _SCHEMAS.get((api_key, version))
    if schema is not None:
        return schema
    kind = _TYPES.get(api_key)
    if kind is None or version not in kind.message.versions:
        return None
    schema = _SCHEMAS[api_key, version] = kind.message.schema(version)
    return schema


class KraftRecord(NamedTuple):
    """A record of the metadata log. `fields` has Kafka's names, and is None where `payload` is not decoded."""

    api_key: int
    version: int
    payload: bytes
    fields: Values | None

    @property
    def schema(self) -> Struct | None:
        """What `fields` follows; None where the apiKey or its version is not known here."""
        return kraft_schema(self.api_key, self.version)

    @property
    def type_name(self) -> str:
        """Kafka's name of the type, or the apiKey's number where it is not known here."""
        kind = _TYPES.get(self.api_key)
        return str(self.api_key) if kind is None else kind.kafka_name


def decode_kraft_record(value: Buffer) -> KraftRecord:
    """The record in a metadata log's or snapshot's record value. Raises DecodeError."""
    end = len(value)
    frame_version, position = read_unsigned_varint(value, 0, end)
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"frame version {frame_version} is not {FRAME_VERSION}", 0)
    api_key, position = read_unsigned_varint(value, position, end)
    version, position = read_unsigned_varint(value, position, end)
    payload = bytes(value[position:])
    read = _payload_reader(api_key, version)
    if read is None:
        return KraftRecord(api_key, version, payload, None)
    try:
        return KraftRecord(api_key, version, payload, read(payload))
    except DecodeError as error:
        raise DecodeError(error.reason, position + error.position) from None


@cache
def _payload_reader(api_key: int, version: int) -> Callable[[Buffer], Values] | None:
    """Kept by numbers: a schema's own hash takes as long as reading a small record."""
    schema = kraft_schema(api_key, version)
    return None if schema is None else whole_reader(schema)


def encode_kraft_record(api_key: int, version: int, fields: Values) -> bytes:
    """A record's value; `fields` as `decode_kraft_record` gives them. Raises ValueError for an unknown type, KeyError
    for an unknown version."""
    return frame(api_key, version) + writer(KraftRecordType(api_key).message.schema(version))(fields)

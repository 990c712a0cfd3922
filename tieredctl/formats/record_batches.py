"""Record batches, magic 2: the body of every `.log` file and of Produce and Fetch (Kafka's DefaultRecordBatch).

This module reads and writes them one at a time; `batch_columns.py` reads a whole buffer of headers at once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.compression import Codec, compress, decompress
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.schema import Field, Primitive, Struct
from tieredctl.formats.varints import Buffer, read_varint, read_varlong, varint, varlong

BATCH_HEADER = Struct(
    "RecordBatch",
    (
        Field("baseOffset", Primitive.INT64),
        Field("batchLength", Primitive.INT32),
        Field("partitionLeaderEpoch", Primitive.INT32),
        Field("magic", Primitive.INT8),
        Field("crc", Primitive.UINT32),
        Field("attributes", Primitive.INT16),
        Field("lastOffsetDelta", Primitive.INT32),
        Field("baseTimestamp", Primitive.INT64),
        Field("maxTimestamp", Primitive.INT64),
        Field("producerId", Primitive.INT64),
        Field("producerEpoch", Primitive.INT16),
        Field("baseSequence", Primitive.INT32),
        Field("recordsCount", Primitive.INT32),
    ),
)
_LAYOUT = struct.Struct(BATCH_HEADER.fixed_format)

HEADER_BYTES = _LAYOUT.size
LENGTH_AT, MAGIC_AT, CRC_AT, CRC_FROM = 8, 16, 17, 21
LOG_OVERHEAD = 12
"""Bytes before those that batchLength counts."""
SHORTEST_LENGTH = HEADER_BYTES - LOG_OVERHEAD
MAGIC = 2
_LONG_SIGN = 1 << 63
SHORTEST_RECORD = 7
"""Bytes of a record without key, value and headers: a byte for each field."""
NO_TIMESTAMP = NO_PRODUCER_ID = NO_SEQUENCE = -1


class Attributes(IntEnum):
    """Bits of a batch's attributes above the three of its codec: numbers, as Python's flags are slow to combine."""

    LOG_APPEND_TIME = 1 << 3
    TRANSACTIONAL = 1 << 4
    CONTROL = 1 << 5
    DELETE_HORIZON = 1 << 6


class ControlType(IntEnum):
    """What a control record says (Kafka's ControlRecordType)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class BatchHeader(NamedTuple):
    """The fixed part of a batch, in the order of the bytes. Times are milliseconds, -1 where there is none."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Inclusive. Compaction may have removed the record at this offset."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """Raises DecodeError where the bits do not name a codec."""
        try:
            return Codec(self.attributes & 7)
        except ValueError:
            raise DecodeError(f"unknown compression codec {self.attributes & 7}", CRC_FROM) from None

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & Attributes.CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & Attributes.TRANSACTIONAL)


class RecordHeader(NamedTuple):
    """A record's header; one key may come several times."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """A record with its absolute offset (inclusive) and timestamp (ms)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()


def read_batch_header(buffer: Buffer, position: int, end: int) -> BatchHeader:
    """The header at a position of a buffer whose content stops at `end`.

    Raises DecodeError where the header is cut short, or its length or magic is impossible. A batch whose body is cut
    short is the caller's to notice: `header.size` may reach beyond `end`.
    """
    if end - position < HEADER_BYTES:
        raise DecodeError(f"{end - position} bytes are too few for a batch header", position)
    header = BatchHeader._make(_LAYOUT.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise DecodeError(f"magic {header.magic} is not {MAGIC}", position + MAGIC_AT)
    if header.batch_length < SHORTEST_LENGTH:
        raise DecodeError(f"batch length {header.batch_length} is below {SHORTEST_LENGTH}", position + LENGTH_AT)
    return header


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether a batch that lies wholly in the buffer has the CRC-32C that its header states."""
    return crc32c(memoryview(buffer)[position + CRC_FROM : position + header.size]) == header.crc


def read_records(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records of a batch that lies wholly in the buffer. The CRC is not checked.

    Raises DecodeError with positions counted in the records section where that is compressed, else in the buffer.
    """
    start, end = position + HEADER_BYTES, position + header.size
    if header.codec is not Codec.NONE:
        buffer = decompress(header.codec, memoryview(buffer)[start:end])
        start, end = 0, len(buffer)
    if not 0 <= header.records_count <= (end - start) // SHORTEST_RECORD:
        raise DecodeError(f"batch claims {header.records_count} records in {end - start} bytes", start)
    for _ in range(header.records_count):
        record, start = _read_record(buffer, start, end, header)
        yield record
    if start != end:
        raise DecodeError(f"{end - start} bytes left over after the last record", start)


def _read_record(buffer: Buffer, position: int, end: int, header: BatchHeader) -> tuple[Record, int]:
    start = position
    length, position = read_varint(buffer, position, end)
    if length < 0 or length > end - position:
        raise DecodeError(f"record claims {length} bytes where {end - position} are left", start)
    end = position + length
    if position == end:
        raise DecodeError("record without attributes", position)
    timestamp_delta, position = read_varlong(buffer, position + 1, end)
    offset_delta, position = read_varint(buffer, position, end)
    key, position = _read_bytes(buffer, position, end)
    value, position = _read_bytes(buffer, position, end)
    headers, position = _read_headers(buffer, position, end)
    if position != end:
        raise DecodeError(f"{end - position} bytes left over in a record", position)
    timestamp = _as_long(header.base_timestamp + timestamp_delta)
    if header.attributes & Attributes.LOG_APPEND_TIME:
        timestamp = header.max_timestamp
    return Record(_as_long(header.base_offset + offset_delta), timestamp, key, value, headers), end


def _as_long(value: int) -> int:
    """A sum as a Java long, and numpy's int64: what is too large for them overflows."""
    return (value + _LONG_SIGN) % (2 * _LONG_SIGN) - _LONG_SIGN


def _read_headers(buffer: Buffer, position: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    start = position
    count, position = read_varint(buffer, position, end)
    if count < 0 or count > end - position:  # a header takes at least two bytes
        raise DecodeError(f"record claims {count} headers", start)
    headers = []
    for _ in range(count):
        start = position
        key, position = _read_bytes(buffer, position, end)
        if key is None:
            raise DecodeError("record header without a key", start)
        value, position = _read_bytes(buffer, position, end)
        try:
            headers.append(RecordHeader(key.decode("utf-8"), value))
        except UnicodeDecodeError:
            raise DecodeError("record header's key is not UTF-8", start) from None
    return tuple(headers), position


def _read_bytes(buffer: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    start = position
    length, position = read_varint(buffer, position, end)
    if length == -1:
        return None, position
    if length < 0 or length > end - position:
        raise DecodeError(f"field claims {length} bytes where {end - position} are left", start)
    return bytes(buffer[position : position + length]), position + length


def read_control_type(record: Record) -> int:
    """The type of a control record, a `ControlType` or a number that later releases added. Raises DecodeError."""
    if record.key is None or len(record.key) < 4:
        raise DecodeError("control record without a type", 0)
    return int(struct.unpack_from(">hh", record.key)[1])


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    partition_leader_epoch: int = -1,
    attributes: int = 0,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """A sound batch of at least one record, with offsets ascending; `base_offset` defaults to the first's."""
    base = records[0].offset if base_offset is None else base_offset
    base_timestamp = records[0].timestamp
    section = b"".join(_encode_record(record, base, base_timestamp) for record in records)
    body = struct.pack(
        BATCH_HEADER.fixed_format[0] + BATCH_HEADER.fixed_format[6:],
        attributes | codec,
        records[-1].offset - base,
        base_timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    ) + compress(codec, section)
    length = len(body) + CRC_FROM - LOG_OVERHEAD
    return struct.pack(">qiibI", base, length, partition_leader_epoch, MAGIC, crc32c(body)) + body


def _encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    body = b"".join(
        (
            b"\0",
            varlong(record.timestamp - base_timestamp),
            varint(record.offset - base_offset),
            _encode_bytes(record.key),
            _encode_bytes(record.value),
            varint(len(record.headers)),
            *_encode_headers(record.headers),
        )
    )
    return varint(len(body)) + body


def _encode_headers(headers: Iterable[RecordHeader]) -> Iterator[bytes]:
    for header in headers:
        yield _encode_bytes(header.key.encode("utf-8"))
        yield _encode_bytes(header.value)


def _encode_bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data

"""Messages of magic 0 and 1, which logs from before Kafka 0.11 begin with (Kafka's LegacyRecord).

A compressed message holds others in its value: such a set, or a message alone, is a batch here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HEADER_DTYPE, HeaderColumns
from tieredctl.formats.compression import Codec, decompress
from tieredctl.formats.lz4_frame import with_header_checksum
from tieredctl.formats.record_batches import (
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attributes,
    Record,
)
from tieredctl.formats.record_fields import HeaderSpans, RecordFields, Spans
from tieredctl.formats.varints import Buffer
from tieredctl.formats.windows import Ints

LEGACY_MAGICS = (0, 1)
_OFFSET_AND_SIZE = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_LONG, _INT = struct.Struct(">q"), struct.Struct(">i")
_CRC_AT = LOG_OVERHEAD
_ATTRIBUTES_AT = MAGIC_AT + 1
_FIELDS_AT = MAGIC_AT + 2
_SHORTEST = {0: 14, 1: 22}
"""What `size` has at least, by magic: a message without key and value."""
SHORTEST_MESSAGE = LOG_OVERHEAD + _SHORTEST[0]
_CODEC_BITS = 7
_NO_EPOCH = -1


class LegacyBatch(NamedTuple):
    """A sound message, or a set of them: where it ends, its magic and attributes, and its records."""

    end: int
    magic: int
    attributes: int
    records: Sequence[Record]


def message_end(buffer: Buffer, position: int, end: int) -> int | None:
    """Where the message at a position ends by its size; None where the buffer does not reach that far into it to tell.
    Raises DecodeError where what is there is not a message of magic 0 or 1."""
    if end - position < SHORTEST_MESSAGE:
        return None
    magic, size = buffer[position + MAGIC_AT], _OFFSET_AND_SIZE.unpack_from(buffer, position)[1]
    if magic not in LEGACY_MAGICS:
        raise DecodeError(f"magic {magic} is not 0 or 1", position + MAGIC_AT)
    if size < _SHORTEST[magic]:
        raise DecodeError(f"message size {size} is below {_SHORTEST[magic]}", position)
    return position + LOG_OVERHEAD + int(size)


def read_legacy_batch(buffer: Buffer, position: int, end: int, most_unfolded: int | None = None) -> LegacyBatch:
    """The message that fills the buffer from a position up to `end`. Raises DecodeError, also where its CRC-32 or that
    of a message in it does not match. `most_unfolded` is `decompress`'s limit."""
    magic, attributes, outer = _read_message(buffer, position, end)
    codec_bits = attributes & _CODEC_BITS
    if codec_bits == Codec.NONE:
        return LegacyBatch(end, magic, attributes, (outer,))
    if codec_bits >= Codec.ZSTD or outer.value is None:
        raise DecodeError(f"a message of magic {magic} cannot have codec {codec_bits} or no value", position)
    inner = list(_inner(_unfolded(Codec(codec_bits), magic, outer.value, most_unfolded), magic))
    if not inner:
        raise DecodeError("a compressed message with none in it", position)
    # Where that is negative, the offsets inside are absolute, as Kafka has it.
    base = max(outer.offset - inner[-1].offset, 0) if magic else 0
    appended = bool(magic and attributes & Attributes.LOG_APPEND_TIME)
    records = [
        one._replace(offset=one.offset + base, timestamp=outer.timestamp if appended else one.timestamp)
        for one in inner
    ]
    if any(later.offset <= one.offset for one, later in pairwise(records)):
        raise DecodeError("the offsets inside a compressed message do not rise", position)
    return LegacyBatch(end, magic, attributes, records)


def _unfolded(codec: Codec, magic: int, value: bytes, limit: int | None) -> bytes:
    # Up to magic 0, Kafka's own clients computed this checksum over other bytes than LZ4 has it.
    section = with_header_checksum(value) if codec is Codec.LZ4 and magic == 0 else value
    return decompress(codec, section, limit=limit)


def _inner(data: bytes, magic: int) -> Iterator[Record]:
    position = 0
    while position < len(data):
        end = message_end(data, position, len(data))
        if end is None or end > len(data):
            raise DecodeError("a message inside another is cut short", position)
        own_magic, attributes, record = _read_message(data, position, end)
        if own_magic != magic or attributes & _CODEC_BITS:
            raise DecodeError("a message inside another has another magic, or is compressed itself", position)
        yield record
        position = end


def _read_message(buffer: Buffer, position: int, end: int) -> tuple[int, int, Record]:
    """Magic, attributes and the message as a record."""
    if zlib.crc32(memoryview(buffer)[position + MAGIC_AT : end]) != _CRC.unpack_from(buffer, position + _CRC_AT)[0]:
        raise DecodeError("CRC-32 does not match", position)
    offset, magic = _OFFSET_AND_SIZE.unpack_from(buffer, position)[0], buffer[position + MAGIC_AT]
    at, timestamp = position + _FIELDS_AT, NO_TIMESTAMP
    if magic:
        timestamp, at = _LONG.unpack_from(buffer, at)[0], at + _LONG.size
    key, at = _field(buffer, at, end)
    value, at = _field(buffer, at, end)
    if at != end:
        raise DecodeError(f"{end - at} bytes left over in a message", at)
    return magic, buffer[position + _ATTRIBUTES_AT], Record(offset, timestamp, key, value)


def _field(buffer: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    if end - position < _INT.size:
        raise DecodeError("a message ends inside a length", position)
    length, start = _INT.unpack_from(buffer, position)[0], position + _INT.size
    if length == -1:
        return None, start
    if not 0 <= length <= end - start:
        raise DecodeError(f"field claims {length} bytes where {end - start} are left", position)
    return bytes(buffer[start : start + length]), start + length


def header_columns(batches: Sequence[LegacyBatch]) -> HeaderColumns:
    """The headers that batches of magic 2 would have with these records, so far as there is anything like it."""
    rows = np.zeros(len(batches), HEADER_DTYPE)
    for row, batch in zip(rows, batches, strict=True):
        base, timestamps = batch.records[0].offset, [record.timestamp for record in batch.records]
        row["baseOffset"], row["lastOffsetDelta"] = base, batch.records[-1].offset - base
        row["partitionLeaderEpoch"], row["magic"] = _NO_EPOCH, batch.magic
        row["attributes"] = batch.attributes & (Attributes.LOG_APPEND_TIME if batch.magic else 0)
        row["maxTimestamp"], row["recordsCount"] = max(timestamps), len(batch.records)
        row["producerId"], row["producerEpoch"], row["baseSequence"] = NO_PRODUCER_ID, _NO_EPOCH, NO_SEQUENCE
    return rows


def legacy_fields(batches: Sequence[LegacyBatch]) -> RecordFields:
    """The records of batches, as those of magic 2 are read."""
    records = [(row, record) for row, batch in enumerate(batches) for record in batch.records]
    rows, offsets, timestamps = (
        np.array([(row, one.offset, one.timestamp) for row, one in records], np.int64).reshape(-1, 3).T
    )
    fields = [field for _, record in records for field in (record.key, record.value)]
    bounds = np.append(0, np.cumsum([len(field or b"") for field in fields], dtype=np.int64))
    nulls = np.array([field is None for field in fields], np.bool_)
    keys, values = (Spans(bounds[at:-1:2], bounds[at + 1 :: 2], nulls[at::2]) for at in (0, 1))
    none: Ints = np.zeros(0, np.int64)
    no_headers = Spans(none, none, none.astype(np.bool_))
    headers = HeaderSpans(np.zeros(len(records) + 1, np.int64), no_headers, no_headers)
    data = b"".join(field or b"" for field in fields)
    return RecordFields(data, rows, offsets, timestamps, keys, values, headers)

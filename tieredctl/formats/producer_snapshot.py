"""Idempotent and transactional producers as of an offset: `<offset>.snapshot`.

Sources: ProducerStateManager, ProducerSnapshot.json.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.schema import Field, Primitive, Struct
from tieredctl.formats.varints import Buffer

PRODUCER_SNAPSHOT_HEADER = Struct(
    "ProducerSnapshot",
    (Field("version", Primitive.INT16), Field("crc", Primitive.UINT32), Field("entryCount", Primitive.INT32)),
)
PRODUCER_ENTRY = Struct(
    "ProducerEntry",
    (
        Field("producerId", Primitive.INT64),
        Field("epoch", Primitive.INT16),
        Field("lastSequence", Primitive.INT32),
        Field("lastOffset", Primitive.INT64),
        Field("offsetDelta", Primitive.INT32),
        Field("timestamp", Primitive.INT64),
        Field("coordinatorEpoch", Primitive.INT32),
        Field("currentTxnFirstOffset", Primitive.INT64),
    ),
)
PRODUCER_SNAPSHOT_VERSION = 1

_HEADER = struct.Struct(PRODUCER_SNAPSHOT_HEADER.fixed_format)
_ENTRY = struct.Struct(PRODUCER_ENTRY.fixed_format)
_CRC_AT, _CRC_FROM = 2, 6
_COUNT = struct.Struct(">i")


class ProducerEntry(NamedTuple):
    """A producer's last batch: offsets absolute and inclusive, `timestamp` in ms, `current_txn_first_offset` -1
    where no transaction is open."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def read_producer_snapshot(data: Buffer) -> list[ProducerEntry]:
    """All producers. Raises DecodeError where a broker would discard the file: version, CRC-32C or length."""
    if len(data) < _HEADER.size:
        raise DecodeError(f"{len(data)} bytes are too few for a producer snapshot", 0)
    version, crc, count = _HEADER.unpack_from(data)
    if version != PRODUCER_SNAPSHOT_VERSION:
        raise DecodeError(f"producer snapshot has version {version}, not {PRODUCER_SNAPSHOT_VERSION}", 0)
    if crc32c(memoryview(data)[_CRC_FROM:]) != crc:
        raise DecodeError("producer snapshot does not match its CRC-32C", _CRC_AT)
    if count * _ENTRY.size != len(data) - _HEADER.size:
        raise DecodeError(f"producer snapshot claims {count} entries in {len(data)} bytes", _CRC_FROM)
    return [ProducerEntry._make(fields) for fields in _ENTRY.iter_unpack(memoryview(data)[_HEADER.size :])]


def encode_producer_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The file's bytes, with their CRC-32C."""
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = b"".join((_COUNT.pack(len(packed)), *packed))
    return _HEADER.pack(PRODUCER_SNAPSHOT_VERSION, crc32c(body), len(packed)) + body[_COUNT.size :]

"""Offset, time and transaction index: fixed-size entries in a row, without header or count.

Sources: OffsetIndex, TimeIndex, TransactionIndex, AbortedTxn. Offsets in the first two are relative to the base offset
of their segment, which the file's name states.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import Field, Primitive, Struct
from tieredctl.formats.varints import Buffer

OFFSET_INDEX_ENTRY = Struct(
    "OffsetIndexEntry", (Field("relativeOffset", Primitive.INT32), Field("position", Primitive.INT32))
)
TIME_INDEX_ENTRY = Struct(
    "TimeIndexEntry", (Field("timestamp", Primitive.INT64), Field("relativeOffset", Primitive.INT32))
)
ABORTED_TRANSACTION = Struct(
    "AbortedTxn",
    (
        Field("version", Primitive.INT16),
        Field("producerId", Primitive.INT64),
        Field("firstOffset", Primitive.INT64),
        Field("lastOffset", Primitive.INT64),
        Field("lastStableOffset", Primitive.INT64),
    ),
)
ABORTED_TRANSACTION_VERSION = 0


class OffsetIndexEntry(NamedTuple):
    """The batch that holds base offset + `relative_offset` begins at byte `position` of the log."""

    relative_offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """Up to base offset + `relative_offset`, no record is later than `timestamp` (ms)."""

    timestamp: int
    relative_offset: int


class AbortedTransaction(NamedTuple):
    """An aborted transaction; offsets are absolute, the first two inclusive."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


_Entry = TypeVar("_Entry", OffsetIndexEntry, TimeIndexEntry)


def read_offset_index(data: Buffer) -> list[OffsetIndexEntry]:
    """The entries before a preallocated tail. Raises DecodeError where relative offsets do not rise."""
    return _read_preallocated(OFFSET_INDEX_ENTRY, OffsetIndexEntry, data)


def read_time_index(data: Buffer) -> list[TimeIndexEntry]:
    """The entries before a preallocated tail. Raises DecodeError where timestamps do not rise."""
    return _read_preallocated(TIME_INDEX_ENTRY, TimeIndexEntry, data)


def read_transaction_index(data: Buffer) -> list[AbortedTransaction]:
    """All aborted transactions. Raises DecodeError where their last offsets do not rise."""
    layout = _layout(ABORTED_TRANSACTION, data)
    entries: list[AbortedTransaction] = []
    for index, (version, *fields) in enumerate(layout.iter_unpack(data)):
        entry = AbortedTransaction._make(fields)
        if version != ABORTED_TRANSACTION_VERSION:
            raise DecodeError(f"aborted transaction has version {version}", index * layout.size)
        if entries and entry.last_offset <= entries[-1].last_offset:
            raise DecodeError("aborted transaction does not end after its predecessor", index * layout.size)
        entries.append(entry)
    return entries


def encode_offset_index(entries: Iterable[OffsetIndexEntry]) -> bytes:
    """The bytes of an index without a preallocated tail."""
    return _encode(OFFSET_INDEX_ENTRY, entries)


def encode_time_index(entries: Iterable[TimeIndexEntry]) -> bytes:
    """The bytes of an index without a preallocated tail."""
    return _encode(TIME_INDEX_ENTRY, entries)


def encode_transaction_index(entries: Iterable[AbortedTransaction]) -> bytes:
    """The bytes of a `.txnindex` file."""
    return _encode(ABORTED_TRANSACTION, ((ABORTED_TRANSACTION_VERSION, *entry) for entry in entries))


def _read_preallocated(schema: Struct, kind: type[_Entry], data: Buffer) -> list[_Entry]:
    """The entries of an index that a broker preallocates with zeros while its segment is active."""
    layout = _layout(schema, data)
    entries: list[_Entry] = []
    end = _end_of_entries(bytes(data), layout.size)
    for index, fields in enumerate(layout.iter_unpack(memoryview(data)[:end])):
        entry = kind._make(fields)
        position = index * layout.size
        if min(entry) < 0:
            raise DecodeError(f"{schema.name} has a value of {min(entry)}", position)
        if entries and entry[0] <= entries[-1][0]:
            raise DecodeError(f"{schema.name} is not above its predecessor", position)
        entries.append(entry)
    return entries


def _end_of_entries(data: bytes, width: int) -> int:
    """Where the zeros begin. An entry of zeros is real only as the first: a single one counts as an entry, several as
    preallocation."""
    written = len(data.rstrip(b"\0"))
    if written == 0:
        return width if len(data) == width else 0
    return -(-written // width) * width


def _layout(schema: Struct, data: Buffer) -> struct.Struct:
    """The struct of an index's entry, once the index is known to hold whole ones."""
    layout = struct.Struct(schema.fixed_format)
    if len(data) % layout.size:
        whole = len(data) - len(data) % layout.size
        raise DecodeError(f"index ends inside an entry of {layout.size} bytes", whole)
    return layout


def _encode(schema: Struct, entries: Iterable[Iterable[int]]) -> bytes:
    layout = struct.Struct(schema.fixed_format)
    return b"".join(layout.pack(*entry) for entry in entries)

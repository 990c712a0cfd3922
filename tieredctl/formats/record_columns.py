"""Where the values of all records of many batches lie, found a column at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.compression import Codec, decompress
from tieredctl.formats.record_batches import HEADER_BYTES, LOG_OVERHEAD, SHORTEST_RECORD, Attributes
from tieredctl.formats.varints import read_varint
from tieredctl.formats.windows import Bytes, Flags, Ints, unsigned_varints_at, zigzag

NO_VALUE = -1
_CODEC_BITS = 7
_INT_BYTES, _LONG_BYTES = 5, 10
_UNFOLDED_AT_ONCE = 32 << 20
_FEW_BATCHES = 128
"""The fewest batches for columns: for fewer, following each record's length is quicker than reading one record of each
at a time."""
_RECORDS_AT_ONCE = 1 << 18
_NO_TOMBSTONES: Ints = np.zeros((0, 3), np.int64)
_LONG, _BITS = 0x80, 0x7F
_LONG_OR_NEGATIVE = _LONG | 1
"""Bits of a varint's first byte: more bytes follow, or the number is negative."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in the order of the log; the value of record i is `buffer[starts[i]:ends[i]]`, none where starts[i] is
    -1. Timestamps are milliseconds. Control records are left out."""

    buffer: bytes
    offsets: Ints
    timestamps: Ints
    starts: Ints
    ends: Ints
    keyed: Flags
    """Whether each record has a key."""
    tombstones: Ints
    """Each record with a key and without a value: its offset, and where its key begins and ends."""

    def tombstone_keys(self) -> dict[int, bytes]:
        """The tombstones' keys, by offset."""
        return {offset: self.buffer[start:end] for offset, start, end in self.tombstones.tolist()}


_Round = tuple[Ints, Ints, Ints, Ints, Ints, Flags]
"""Some records: their batches, offsets, timestamps, where their values begin and end, whether they have keys."""


@dataclass(slots=True)
class _Cursor:
    """The records section of each batch that still has records to be read."""

    batch: Ints
    position: Ints
    end: Ints
    left: Ints

    def columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.batch, self.position, self.end, self.left

    def where(self, keep: Flags) -> _Cursor:
        return _Cursor(*(column[keep] for column in self.columns()))


def record_values(
    buffer: bytes, positions: Sequence[int], headers: HeaderColumns
) -> Iterator[tuple[slice, RecordColumns | None]]:
    """The records of sound batches, some batches at a time: which of them, and their records, in one piece or several.

    None for the records of batches of which one is malformed or has headers: the reader of single batches finds which,
    and reads the others. Memory follows the largest batch, not how far all of them unfold.
    """
    for stretch, sections in unfolded_sections(buffer, np.asarray(positions, np.int64), headers):
        try:
            pieces = _values(sections, headers[stretch])
        except DecodeError:
            yield stretch, None
        else:
            yield from ((stretch, piece) for piece in pieces)


def _values(sections: RecordSections | DecodeError, headers: HeaderColumns) -> Iterator[RecordColumns]:
    if isinstance(sections, DecodeError):
        raise sections
    data: Bytes = np.frombuffer(sections.buffer, np.uint8)
    bases = headers["baseOffset"].astype(np.int64)
    base_timestamps = headers["baseTimestamp"].astype(np.int64)
    appended = (headers["attributes"] & Attributes.LOG_APPEND_TIME) != 0
    appended_at = headers["maxTimestamp"].astype(np.int64)
    rounds: list[_Round] = []
    tombstones: list[Ints] = []
    for cursor in _rounds(sections.buffer, sections.cursor(headers)):
        batch = cursor.batch
        timestamp_delta, offset_delta, key_start, key_end, start, end = _read_record(data, cursor)
        timestamps = np.where(appended[batch], appended_at[batch], base_timestamps[batch] + timestamp_delta)
        offsets = bases[batch] + offset_delta
        rounds.append((batch, offsets, timestamps, start, end, key_start != NO_VALUE))
        keyed = np.flatnonzero((start == NO_VALUE) & (key_start != NO_VALUE))
        tombstones.append(np.column_stack((offsets[keyed], key_start[keyed], key_end[keyed])))
    return _pieces(_in_log_order(sections.buffer, rounds, np.concatenate([_NO_TOMBSTONES, *tombstones])))


@dataclass(frozen=True, slots=True)
class RecordSections:
    """Where in a buffer the records sections of batches are; of a control batch, nowhere."""

    buffer: bytes
    starts: Ints
    ends: Ints

    def counts(self, headers: HeaderColumns) -> Ints:
        """How many records each batch has. Raises DecodeError where its section has no room for as many."""
        counts = headers["recordsCount"].astype(np.int64)
        if ((counts < 0) | (counts > (self.ends - self.starts) // SHORTEST_RECORD)).any():
            raise DecodeError("impossible count of records", 0)
        return counts

    def cursor(self, headers: HeaderColumns) -> _Cursor:
        counts = self.counts(headers)
        batches = np.flatnonzero((headers["attributes"] & Attributes.CONTROL) == 0)
        return _Cursor(batches, self.starts[batches], self.ends[batches], counts[batches])


def unfolded_sections(
    buffer: bytes, positions: Ints, headers: HeaderColumns, most_unfolded: int | None = None
) -> Iterator[tuple[slice, RecordSections | DecodeError]]:
    """The records sections of some batches at a time, as many as unfold to a limit, or a single one that exceeds it:
    decompressed ones follow a copy of the buffer, unless all of them are. For those of which the last cannot be
    decompressed, why that is so. `most_unfolded` is `decompress`'s limit for each batch."""
    attributes = headers["attributes"].astype(np.int64)
    starts = positions + HEADER_BYTES
    ends = positions + headers["batchLength"].astype(np.int64) + LOG_OVERHEAD
    codecs = attributes & _CODEC_BITS
    are_folded = ((attributes & int(Attributes.CONTROL)) == 0) & (codecs != int(Codec.NONE))
    unchanged = b"" if are_folded.all() else buffer
    parts, length, first = [unchanged], len(unchanged), 0

    def sections(after: int) -> tuple[slice, RecordSections]:
        stretch = slice(first, after)
        joined = b"".join(parts) if len(parts) > 1 else buffer
        return stretch, RecordSections(joined, starts[stretch], ends[stretch])

    view = memoryview(buffer)
    spans = (starts[are_folded].tolist(), ends[are_folded].tolist(), codecs[are_folded].tolist())
    for index, start, end, codec in zip(np.flatnonzero(are_folded).tolist(), *spans, strict=True):
        if length - len(unchanged) > _UNFOLDED_AT_ONCE:
            yield sections(index)
            parts, length, first = [unchanged], len(unchanged), index
        try:
            section = decompress(_codec(codec), view[start:end], limit=most_unfolded)
        except DecodeError as error:
            yield slice(first, index + 1), error
            parts, length, first = [unchanged], len(unchanged), index + 1
            continue
        parts.append(section)
        starts[index], ends[index] = length, length + len(section)
        length += len(section)
    if first < len(positions):
        yield sections(len(positions))


_CODECS = tuple(Codec)


def _codec(bits: int) -> Codec:
    if bits >= len(_CODECS):
        raise DecodeError(f"unknown compression codec {bits}", 0)
    return _CODECS[bits]


def _rounds(buffer: bytes, cursor: _Cursor) -> Iterator[_Cursor]:
    """Records to be read: the next record of each of many batches, until few batches are left; those one by one."""
    cursor = _without_finished(cursor)
    while len(cursor.batch) > _FEW_BATCHES:
        yield cursor
        cursor.left -= 1
        cursor = _without_finished(cursor)
    for batch, position, end, left in zip(*(column.tolist() for column in cursor.columns()), strict=True):
        starts = np.frombuffer(record_starts(buffer, position, end, left), np.int64)
        for first in range(0, left, _RECORDS_AT_ONCE):
            some = starts[first : first + _RECORDS_AT_ONCE]
            yield _Cursor(np.full(len(some), batch), some, np.full(len(some), end), np.ones(len(some), np.int64))


def record_starts(buffer: bytes, position: int, end: int, count: int) -> array[int]:
    """Where each record of a section begins, by the lengths alone."""
    starts = array("q", [0]) * count
    for index in range(count):
        starts[index] = position
        first = buffer[position] if position < end else _LONG_OR_NEGATIVE
        if not first & _LONG_OR_NEGATIVE:  # most are
            position += 1 + (first >> 1)
        elif not first & 1 and position + 1 < end and buffer[position + 1] < _LONG:
            position += 2 + (first & _BITS | buffer[position + 1] << 7) // 2
        else:
            length, after = read_varint(buffer, position, end)
            if length < 0:
                raise DecodeError(f"record claims {length} bytes", position)
            position = after + length
    if position != end:
        raise DecodeError("the records do not end where their batch does", position)
    return starts


def _pieces(records: RecordColumns) -> Iterator[RecordColumns]:
    """The same records, in portions that can be made into objects."""
    columns: tuple[Any, ...] = (records.offsets, records.timestamps, records.starts, records.ends, records.keyed)
    for first in range(0, len(records.offsets), _RECORDS_AT_ONCE):
        piece = [column[first : first + _RECORDS_AT_ONCE] for column in columns]
        tombstones = records.tombstones
        if len(tombstones):
            tombstones = tombstones[(tombstones[:, 0] >= piece[0].min()) & (tombstones[:, 0] <= piece[0].max())]
        offsets, timestamps, starts, ends, keyed = piece
        yield RecordColumns(records.buffer, offsets, timestamps, starts, ends, keyed, tombstones)


def _without_finished(cursor: _Cursor) -> _Cursor:
    finished = cursor.left == 0
    if not finished.any():
        return cursor
    if (cursor.position[finished] != cursor.end[finished]).any():
        raise DecodeError("bytes left over after the last record", int(cursor.position[finished][0]))
    return cursor.where(~finished)


def _read_record(data: Bytes, cursor: _Cursor) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """The next record of every batch: deltas of timestamp and offset, start and end of the key and of the value."""
    length, position = varints_at(data, cursor.position)
    record_end = position + length
    timestamp_delta, position = varints_at(data, position + 1, _LONG_BYTES)
    offset_delta, position = varints_at(data, position)
    key_length, key_start = varints_at(data, position)
    key_end = key_start + np.maximum(key_length, 0)
    value_length, start = varints_at(data, key_end)
    end = start + np.maximum(value_length, 0)
    header_count, position = varints_at(data, end)
    sane = (length > 0) & (record_end <= cursor.end) & (key_length >= -1) & (value_length >= -1)
    sane &= (header_count == 0) & (position == record_end)  # no client writes headers in this topic
    if not sane.all():
        raise DecodeError("malformed record", int(cursor.position[~sane][0]))
    cursor.position = record_end
    key_start = np.where(key_length < 0, NO_VALUE, key_start)
    return timestamp_delta, offset_delta, key_start, key_end, np.where(value_length < 0, NO_VALUE, start), end


def varints_at(data: Bytes, positions: Ints, longest: int = _INT_BYTES) -> tuple[Ints, Ints]:
    """Signed varints at positions, and the positions after them. Raises DecodeError."""
    values, after, ended = unsigned_varints_at(data, positions, longest)
    if not ended.all():
        raise DecodeError("varint without an end", int(positions[~ended][0]))
    return zigzag(values), after


def _in_log_order(buffer: bytes, rounds: list[_Round], tombstones: Ints) -> RecordColumns:
    if not rounds:
        none = np.zeros(0, np.int64)
        return RecordColumns(buffer, none, none, none, none, none.astype(bool), tombstones)
    if len(rounds) == 1:
        _, offsets, timestamps, starts, ends, keyed = rounds[0]
        return RecordColumns(buffer, offsets, timestamps, starts, ends, keyed, tombstones)
    columns: list[Any]
    batches, *columns = (np.concatenate(parts) for parts in zip(*rounds, strict=True))
    if (batches[1:] < batches[:-1]).any():
        order = np.argsort(batches, kind="stable")  # the rounds already go by record within a batch
        columns = [column[order] for column in columns]
    offsets, timestamps, starts, ends, keyed = columns
    return RecordColumns(buffer, offsets, timestamps, starts, ends, keyed, tombstones)

"""Where the values of all records of many batches lie, found a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.compression import Codec, decompress
from tieredctl.formats.record_batches import HEADER_BYTES, LOG_OVERHEAD, Attributes
from tieredctl.formats.windows import Bytes, Flags, Ints, unsigned_varints_at, zigzag

NO_VALUE = -1
_CODEC_BITS = 7
_INT_BYTES, _LONG_BYTES = 5, 10


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in the order of the log; the value of record i is `buffer[starts[i]:ends[i]]`, none where starts[i] is
    -1. Timestamps are milliseconds. Control records are left out."""

    buffer: bytes
    offsets: Ints
    timestamps: Ints
    starts: Ints
    ends: Ints


@dataclass(slots=True)
class _Cursor:
    """The records section of each batch that still has records to be read."""

    batch: Ints
    position: Ints
    end: Ints
    left: Ints

    def where(self, keep: Flags) -> _Cursor:
        return _Cursor(self.batch[keep], self.position[keep], self.end[keep], self.left[keep])


def record_values(buffer: bytes, positions: Sequence[int], headers: HeaderColumns) -> RecordColumns:
    """The records of sound batches. Raises DecodeError, without naming a batch, where any of them is malformed or has
    headers: the reader of single batches tells which, and reads the others."""
    buffer, cursor = _sections(buffer, np.asarray(positions, np.int64), headers)
    data: Bytes = np.frombuffer(buffer, np.uint8)
    bases = headers["baseOffset"].astype(np.int64)
    base_timestamps = headers["baseTimestamp"].astype(np.int64)
    appended = (headers["attributes"] & Attributes.LOG_APPEND_TIME) != 0
    appended_at = headers["maxTimestamp"].astype(np.int64)
    rounds: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
    cursor = _without_finished(cursor)
    while len(cursor.batch):
        batch = cursor.batch
        timestamp_delta, offset_delta, start, end = _read_record(data, cursor)
        timestamps = np.where(appended[batch], appended_at[batch], base_timestamps[batch] + timestamp_delta)
        rounds.append((batch, bases[batch] + offset_delta, timestamps, start, end))
        cursor.left -= 1
        cursor = _without_finished(cursor)
    return _in_log_order(buffer, rounds)


def _sections(buffer: bytes, positions: Ints, headers: HeaderColumns) -> tuple[bytes, _Cursor]:
    """The records sections, decompressed ones appended to the buffer."""
    attributes = headers["attributes"].astype(np.int64)
    data_batches = np.flatnonzero((attributes & Attributes.CONTROL) == 0)
    starts = positions + HEADER_BYTES
    ends = positions + headers["batchLength"].astype(np.int64) + LOG_OVERHEAD
    parts, length = [buffer], len(buffer)
    codecs = attributes & _CODEC_BITS
    for index in data_batches[codecs[data_batches] != Codec.NONE].tolist():
        if codecs[index] > Codec.ZSTD:
            raise DecodeError(f"unknown compression codec {codecs[index]}", int(positions[index]))
        section = decompress(Codec(codecs[index]), memoryview(buffer)[starts[index] : ends[index]])
        parts.append(section)
        starts[index], ends[index] = length, length + len(section)
        length += len(section)
    counts = headers["recordsCount"].astype(np.int64)
    if (counts < 0).any() or (counts > ends - starts).any():
        raise DecodeError("impossible count of records", 0)
    cursor = _Cursor(data_batches, starts[data_batches], ends[data_batches], counts[data_batches])
    return (b"".join(parts) if len(parts) > 1 else buffer), cursor


def _without_finished(cursor: _Cursor) -> _Cursor:
    finished = cursor.left == 0
    if not finished.any():
        return cursor
    if (cursor.position[finished] != cursor.end[finished]).any():
        raise DecodeError("bytes left over after the last record", int(cursor.position[finished][0]))
    return cursor.where(~finished)


def _read_record(data: Bytes, cursor: _Cursor) -> tuple[Ints, Ints, Ints, Ints]:
    """The next record of every batch: deltas of timestamp and offset, start and end of the value."""
    length, position = _varint(data, cursor.position)
    record_end = position + length
    timestamp_delta, position = _varint(data, position + 1, _LONG_BYTES)
    offset_delta, position = _varint(data, position)
    key_length, position = _varint(data, position)
    value_length, start = _varint(data, position + np.maximum(key_length, 0))
    end = start + np.maximum(value_length, 0)
    header_count, position = _varint(data, end)
    sane = (length > 0) & (record_end <= cursor.end) & (key_length >= -1) & (value_length >= -1)
    sane &= (header_count == 0) & (position == record_end)  # nobody writes headers in this topic
    if not sane.all():
        raise DecodeError("malformed record", int(cursor.position[~sane][0]))
    cursor.position = record_end
    return timestamp_delta, offset_delta, np.where(value_length < 0, NO_VALUE, start), end


def _varint(data: Bytes, positions: Ints, longest: int = _INT_BYTES) -> tuple[Ints, Ints]:
    values, behind, ended = unsigned_varints_at(data, positions, longest)
    if not ended.all():
        raise DecodeError("varint without an end", int(positions[~ended][0]))
    return zigzag(values), behind


def _in_log_order(buffer: bytes, rounds: list[tuple[Ints, Ints, Ints, Ints, Ints]]) -> RecordColumns:
    if not rounds:
        none = np.zeros(0, np.int64)
        return RecordColumns(buffer, none, none, none, none)
    if len(rounds) == 1:
        return RecordColumns(buffer, *rounds[0][1:])
    batches, *columns = (np.concatenate(parts) for parts in zip(*rounds, strict=True))
    order = np.argsort(batches, kind="stable")  # the rounds already go by record within a batch
    offsets, timestamps, starts, ends = (column[order] for column in columns)
    return RecordColumns(buffer, offsets, timestamps, starts, ends)

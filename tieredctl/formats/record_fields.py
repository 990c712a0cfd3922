"""Every field of all records of many batches, found a column at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tieredctl.errors import DecodeError, UnfoldsTooFar
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.record_batches import Attributes
from tieredctl.formats.record_columns import RecordSections, record_starts, unfolded_sections, varints_at
from tieredctl.formats.varints import read_varint
from tieredctl.formats.windows import Bytes, Flags, Ints

MOST_TOGETHER = 1 << 16
"""How many records a piece has at most."""
_MOST_HEADERS, _MOST_HEADERS_OF_RECORD = 1 << 20, 1 << 16
"""The most headers of the records of a piece, and of one of them. Nothing limits the headers that a producer sends, and
two bytes, which compression makes next to nothing, are enough for one that takes a hundred here."""
_FEW_BATCHES = 48
"""The fewest batches for columns: for fewer, following each record's length is quicker than reading one length of each
at a time."""
_FEW_RECORDS = 16
"""The same for records that have many headers."""
_LONG_BYTES = 10


class Spans(NamedTuple):
    """Byte strings in a buffer, in its order and apart; of one that is null, an empty one."""

    starts: Ints
    ends: Ints
    are_null: Flags


class HeaderSpans(NamedTuple):
    """The headers of records: those of record i are `bounds[i]` up to, not including, `bounds[i + 1]`."""

    bounds: Ints
    keys: Spans
    values: Spans


class RecordFields(NamedTuple):
    """Records in the order of the log; timestamps are milliseconds."""

    buffer: bytes
    batches: Ints
    """The row of each record's batch."""
    offsets: Ints
    timestamps: Ints
    keys: Spans
    values: Spans
    headers: HeaderSpans


class MalformedBatch(NamedTuple):
    """A batch whose records cannot be read though its CRC is right: its row, and why; `is_too_large` says that it may
    be right, but unfolds too far to be read."""

    batch: int
    reason: str
    is_too_large: bool = False


def record_fields(
    buffer: bytes, positions: Ints, headers: HeaderColumns, most_unfolded: int | None = None
) -> Iterator[RecordFields | MalformedBatch]:
    """The records of sound batches in pieces of at most MOST_TOGETHER, and the batches that are malformed; control
    batches are to be left out before. Memory follows the largest batch, not how far all of them unfold; `most_unfolded`
    is `decompress`'s limit for each."""
    for stretch, sections in unfolded_sections(buffer, positions, headers, most_unfolded):
        first, rows = int(stretch.start), range(int(stretch.start), int(stretch.stop))
        try:
            if isinstance(sections, DecodeError):
                raise sections
            batches = _Batches.of(_in_order(sections), headers[stretch])
        except DecodeError as error:
            yield from _one_by_one(buffer, positions, headers, rows, error, most_unfolded)
            continue
        for some in batches.pieces():
            try:
                for piece in batches.fields(some):
                    yield piece._replace(batches=piece.batches + first)
            except DecodeError as error:
                yield from _one_by_one(buffer, positions, headers, rows[some], error, most_unfolded)


def _one_by_one(
    buffer: bytes,
    positions: Ints,
    headers: HeaderColumns,
    rows: range,
    error: DecodeError,
    most_unfolded: int | None,
) -> Iterator[RecordFields | MalformedBatch]:
    """The records of batches that cannot be read together."""
    if len(rows) == 1:
        yield MalformedBatch(rows[0], error.reason, isinstance(error, UnfoldsTooFar))
        return
    for row in rows:
        one = slice(row, row + 1)
        pieces = record_fields(buffer, positions[one], headers[one], most_unfolded)
        yield from (_of_batch(piece, row) for piece in pieces)


def _of_batch(piece: RecordFields | MalformedBatch, row: int) -> RecordFields | MalformedBatch:
    if isinstance(piece, MalformedBatch):
        return piece._replace(batch=row)
    return piece._replace(batches=piece.batches + row)


def _in_order(sections: RecordSections) -> RecordSections:
    """The same in the order of the batches: what is decompressed follows what was not compressed."""
    starts, ends = sections.starts, sections.ends
    if (starts[1:] >= ends[:-1]).all():
        return sections
    view = memoryview(sections.buffer)
    joined = b"".join(view[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
    bounds = np.append(0, np.cumsum(ends - starts))
    return RecordSections(joined, bounds[:-1], bounds[1:])


@dataclass(frozen=True, slots=True)
class _Batches:
    """Batches whose records were found; they still may be malformed."""

    buffer: bytes
    data: Bytes
    headers: HeaderColumns
    counts: Ints
    starts: Ints
    """Where each record begins."""
    section_ends: Ints

    @classmethod
    def of(cls, sections: RecordSections, headers: HeaderColumns) -> _Batches:
        """Raises DecodeError."""
        data: Bytes = np.frombuffer(sections.buffer, np.uint8)
        counts = sections.counts(headers)
        return cls(sections.buffer, data, headers, counts, _starts(data, sections, counts), sections.ends)

    def pieces(self) -> Iterator[slice]:
        """Batches that together have at most MOST_TOGETHER records, or a single one."""
        bounds = np.append(0, np.cumsum(self.counts))
        first, count = 0, len(self.counts)
        while first < count:
            after = int(np.searchsorted(bounds, bounds[first] + MOST_TOGETHER, side="right")) - 1
            yield slice(first, max(after, first + 1))
            first = max(after, first + 1)

    def fields(self, some: slice) -> Iterator[RecordFields]:
        """The records of some batches, those of a large one in several pieces. Raises DecodeError, for a large one
        after the records before the malformed ones."""
        before, counts = int(self.counts[: some.start].sum()), self.counts[some]
        starts = self.starts[before : before + int(counts.sum())]
        batches = np.repeat(np.arange(some.start, some.stop), counts)
        ends = np.append(starts[1:], 0)
        ends[np.cumsum(counts)[counts > 0] - 1] = self.section_ends[some][counts > 0]
        for first in range(0, len(starts), MOST_TOGETHER):
            rows = slice(first, first + MOST_TOGETHER)
            yield _fields(self.buffer, self.data, self.headers, batches[rows], starts[rows], ends[rows])


def _starts(data: Bytes, sections: RecordSections, counts: Ints) -> Ints:
    """Where each record begins, by the lengths alone: of the next record of each of many batches, until few batches are
    left, and of those one by one."""
    starts = np.empty(int(counts.sum()), np.int64)
    most_first = np.argsort(-counts, kind="stable")
    places = (np.cumsum(counts) - counts)[most_first]
    positions, ends, left = sections.starts[most_first].copy(), sections.ends[most_first], counts[most_first]
    done = 0
    while (going_on := int(np.searchsorted(-left, -done))) > _FEW_BATCHES:
        here = positions[:going_on]
        starts[places[:going_on] + done] = here
        lengths, after = varints_at(data, here)
        here[:] = after + lengths
        if (lengths < 0).any() or (here > ends[:going_on]).any():
            raise DecodeError("a record is longer than its batch", 0)
        done += 1
    columns = (places, positions, ends, left)
    for row, (place, position, end, count) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if row < going_on:
            found = record_starts(sections.buffer, position, end, count - done)
            starts[place + done : place + count] = found
        elif position != end:
            raise DecodeError("bytes left over after the last record", position)
    return starts


def _fields(
    buffer: bytes, data: Bytes, headers: HeaderColumns, batches: Ints, starts: Ints, ends: Ints
) -> RecordFields:
    """The fields of records that begin and end there. Raises DecodeError."""
    _, position = varints_at(data, starts)
    timestamp_deltas, position = varints_at(data, position + 1, _LONG_BYTES)
    offset_deltas, position = varints_at(data, position)
    keys, position = _spans(data, position, ends)
    values, position = _spans(data, position, ends)
    header_spans, position = _headers(buffer, data, position, ends)
    if (position != ends).any():
        raise DecodeError("a record does not end where its length says", int(starts[position != ends][0]))
    _demand_rising(offset_deltas, batches, headers)
    return RecordFields(
        buffer,
        batches,
        headers["baseOffset"].astype(np.int64)[batches] + offset_deltas,
        _timestamps(timestamp_deltas, batches, headers),
        keys,
        values,
        header_spans,
    )


def _timestamps(deltas: Ints, batches: Ints, headers: HeaderColumns) -> Ints:
    appended = (headers["attributes"] & Attributes.LOG_APPEND_TIME) != 0
    own = headers["baseTimestamp"].astype(np.int64)[batches] + deltas
    if not appended.any():
        return own
    return np.where(appended[batches], headers["maxTimestamp"].astype(np.int64)[batches], own)


def _demand_rising(deltas: Ints, batches: Ints, headers: HeaderColumns) -> None:
    beyond = (deltas < 0) | (deltas > headers["lastOffsetDelta"].astype(np.int64)[batches])
    falls = (deltas[1:] <= deltas[:-1]) & (batches[1:] == batches[:-1])
    if beyond.any() or falls.any():
        raise DecodeError("its records' offsets do not rise within those of the batch", 0)


def _spans(data: Bytes, positions: Ints, ends: Ints) -> tuple[Spans, Ints]:
    """A byte string with its length before it, or null, at each position; and the positions after them."""
    lengths, starts = varints_at(data, positions)
    after = starts + np.maximum(lengths, 0)
    if (lengths < -1).any() or (after > ends).any():
        raise DecodeError("a field is longer than its record", 0)
    return Spans(starts, after, lengths < 0), after


def _headers(buffer: bytes, data: Bytes, positions: Ints, ends: Ints) -> tuple[HeaderSpans, Ints]:
    """The headers of records that have theirs there, and the positions after them."""
    counts, after = varints_at(data, positions)
    if (counts < 0).any() or (counts > ends - after).any():
        raise DecodeError("impossible count of headers", 0)
    bounds = np.append(0, np.cumsum(counts))
    total = int(bounds[-1])
    if total > _MOST_HEADERS or (counts > _MOST_HEADERS_OF_RECORD).any():
        most = f"{_MOST_HEADERS} headers, or {_MOST_HEADERS_OF_RECORD} of one record"
        raise UnfoldsTooFar(f"it unfolds beyond {most}", 0)
    columns = np.empty((6, total), np.int64)
    rows = np.flatnonzero(counts)
    number = 0
    while len(rows) > _FEW_RECORDS:
        keys, middle = _spans(data, after[rows], ends[rows])
        values, beyond = _spans(data, middle, ends[rows])
        columns[:, bounds[rows] + number] = (*keys, *values)
        after[rows] = beyond
        number += 1
        rows = rows[counts[rows] > number]
    for row in rows.tolist():
        position, end = int(after[row]), int(ends[row])
        for place in range(int(bounds[row]) + number, int(bounds[row + 1])):
            columns[:3, place], position = _span(buffer, position, end)
            columns[3:, place], position = _span(buffer, position, end)
        after[row] = position
    if columns[2].any():
        raise DecodeError("record header without a key", 0)
    of_keys, of_values = (Spans(starts, stops, nulls != 0) for starts, stops, nulls in (columns[:3], columns[3:]))
    return HeaderSpans(bounds, of_keys, of_values), after


def _span(buffer: bytes, position: int, end: int) -> tuple[tuple[int, int, int], int]:
    length, start = read_varint(buffer, position, end)
    if length < -1 or length > end - start:
        raise DecodeError("a field is longer than its record", position)
    after = start + max(length, 0)
    return (start, after, int(length < 0)), after

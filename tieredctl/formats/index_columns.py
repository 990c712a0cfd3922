"""Offset and time indexes as columns: the bulk counterpart of `indexes.py`, from the same schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.batch_columns import HeaderColumns, fixed_dtype
from tieredctl.formats.indexes import (
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    OffsetIndexEntry,
    TimeIndexEntry,
    read_offset_index,
    read_time_index,
)
from tieredctl.formats.windows import Ints

_OFFSET_ENTRY = fixed_dtype(OFFSET_INDEX_ENTRY)
_TIME_ENTRY = fixed_dtype(TIME_INDEX_ENTRY)


class OffsetIndexColumns(NamedTuple):
    """Entries in order: offsets relative to the segment's base offset, and byte positions in its log."""

    relative_offsets: Ints
    positions: Ints

    def last(self) -> OffsetIndexColumns:
        """The last entry alone, if there is one."""
        return OffsetIndexColumns(self.relative_offsets[-1:], self.positions[-1:])


class TimeIndexColumns(NamedTuple):
    """Entries in order: timestamps (ms), and offsets relative to the segment's base offset."""

    timestamps: Ints
    relative_offsets: Ints

    def last(self) -> TimeIndexColumns:
        """The last entry alone, if there is one."""
        return TimeIndexColumns(self.timestamps[-1:], self.relative_offsets[-1:])


def read_offset_index_columns(data: bytes) -> OffsetIndexColumns:
    """The same entries, and the same DecodeErrors, as `indexes.read_offset_index`."""
    if len(data) % _OFFSET_ENTRY.itemsize == 0:
        rows = np.frombuffer(data, _OFFSET_ENTRY)
        columns = OffsetIndexColumns(_native(rows["relativeOffset"]), _native(rows["position"]))
        if _rises(columns.relative_offsets) and (columns.positions >= 0).all():
            return columns
    entries = read_offset_index(data)
    return OffsetIndexColumns(_column(entries, 0), _column(entries, 1))


def read_time_index_columns(data: bytes) -> TimeIndexColumns:
    """The same entries, and the same DecodeErrors, as `indexes.read_time_index`."""
    if len(data) % _TIME_ENTRY.itemsize == 0:
        rows = np.frombuffer(data, _TIME_ENTRY)
        columns = TimeIndexColumns(_native(rows["timestamp"]), _native(rows["relativeOffset"]))
        if _rises(columns.timestamps) and (columns.relative_offsets >= 0).all():
            return columns
    entries = read_time_index(data)
    return TimeIndexColumns(_column(entries, 0), _column(entries, 1))


def _native(values: NDArray[Any]) -> Ints:
    return values.astype(np.int64)


def _column(entries: Sequence[tuple[int, ...]], field: int) -> Ints:
    return np.array([entry[field] for entry in entries], np.int64)


def _rises(values: Ints) -> bool:
    return not len(values) or (values[0] >= 0 and bool((values[1:] > values[:-1]).all()))


_NO_TIMESTAMP = -1


class IndexBuilder:
    """Takes a sound log's batches block by block, and keeps the entries of both indexes.

    A batch gets an entry in the offset index once it begins more than `index_interval_bytes` after the batch that got
    the last one, and with it one in the time index if timestamps have risen. A broker that was restarted while it
    wrote the segment started counting again, and up to Kafka 3.9.0 it counted by append: its indexes then have other
    entries, with which look-ups find the same batch or an earlier one.
    """

    def __init__(self, base_offset: int, index_interval_bytes: int) -> None:
        """`base_offset` is the segment's; offsets in its indexes are relative to it."""
        self._base_offset = base_offset
        self._interval = index_interval_bytes
        self._last_indexed = 0
        self._latest = _NO_TIMESTAMP
        self._latest_at = base_offset
        self._offset_entries: list[OffsetIndexEntry] = []
        self._time_entries: list[TimeIndexEntry] = []

    def feed(self, positions: Ints, headers: HeaderColumns) -> None:
        """The log's next batches: where in the log each begins, and their headers. At least one."""
        lasts = headers["baseOffset"].astype(np.int64) + headers["lastOffsetDelta"]
        timestamps = headers["maxTimestamp"].astype(np.int64)
        latest = np.maximum(np.maximum.accumulate(timestamps), self._latest)
        rises = np.flatnonzero(timestamps > np.append(self._latest, latest[:-1]))
        for row in self._indexed(positions):
            self._offset_entries.append(OffsetIndexEntry(int(lasts[row]) - self._base_offset, int(positions[row])))
            self._note_latest(latest, lasts, rises[: np.searchsorted(rises, row, side="right")])
            self._add_time_entry()
        self._note_latest(latest, lasts, rises)

    def offset_index(self) -> list[OffsetIndexEntry]:
        """The offset index of the batches so far."""
        return self._offset_entries

    def time_index(self) -> list[TimeIndexEntry]:
        """The time index of all batches: it ends with the latest timestamp, as in a segment that was closed."""
        self._add_time_entry()
        return self._time_entries

    def _indexed(self, positions: Ints) -> list[int]:
        rows = []
        while (row := int(np.searchsorted(positions, self._last_indexed + self._interval, side="right"))) < len(
            positions
        ):
            rows.append(row)
            self._last_indexed = int(positions[row])
        return rows

    def _note_latest(self, latest: Ints, lasts: Ints, rises: Ints) -> None:
        """The latest timestamp as of the last of `rises`, and the last offset of the first batch that has it."""
        if len(rises):
            row = int(rises[-1])
            self._latest, self._latest_at = int(latest[row]), int(lasts[row])

    def _add_time_entry(self) -> None:
        last = self._time_entries[-1].timestamp if self._time_entries else _NO_TIMESTAMP
        if self._latest > last:
            self._time_entries.append(TimeIndexEntry(self._latest, self._latest_at - self._base_offset))

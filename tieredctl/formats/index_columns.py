"""Offset and time indexes as columns: the bulk counterpart of `indexes.py`, from the same schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.batch_columns import fixed_dtype
from tieredctl.formats.indexes import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, read_offset_index, read_time_index
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

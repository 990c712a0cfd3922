"""Verification tasks cut into units of about half a minute, by the bytes and the requests that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

SECONDS_PER_UNIT = 30.0
_SECONDS_PER_CHUNK = 60.0
_BYTES_PER_SECOND = 64e6
_SECONDS_PER_REQUEST = 0.005
"""At 30 ms each and several at a time, with the CPU time of what they bring."""
_MOST_SEGMENTS = 4_096
_FIRST_SECONDS, _SMALLER = 64.0, 15
"""The first minute is cut finer, so that a small store keeps many cores busy, too."""
UNIT_COLUMNS = pa.schema({"part": pa.int32(), "unit": pa.int64(), "row": pa.int64()})
"""Units are numbered from 0 in each part, and so are a part's rows."""


def estimated_seconds(size: Any, requests: Any) -> Any:
    """How long it takes to read so many bytes with so many requests; numbers, or columns of them."""
    return size / _BYTES_PER_SECOND + requests * _SECONDS_PER_REQUEST


@dataclass(frozen=True, slots=True)
class UnitSize:
    """How much makes a unit: a time by estimate, and at most about so many bytes."""

    seconds: float = SECONDS_PER_UNIT
    most_bytes: float = float("inf")

    def cut(self, batches: Iterable[pa.RecordBatch], part: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches that have TASK_SCHEMA's columns, with UNIT_COLUMNS. A unit ends once it is full, so it is larger by
        a segment at most."""
        unit, last, filled, row = 0, 0, 0.0, 0
        for batch in batches:
            if not batch.num_rows:
                continue
            ends = filled + np.cumsum(self._shares(batch))
            begins = np.concatenate([[filled], ends[:-1]])
            places = np.floor(self._finer_at_first(begins) if part == 0 else begins).astype(np.int64)
            # A segment that fills several units leaves no gap in their numbers.
            units = unit + np.cumsum(np.diff(places, prepend=last) > 0)
            unit, last, filled = int(units[-1]), int(places[-1]), float(ends[-1])
            rows = np.arange(row, row + batch.num_rows)
            row += batch.num_rows
            parts = pa.array(np.full(batch.num_rows, part, np.int32))
            columns = [*batch.columns, parts, pa.array(units), pa.array(rows)]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([*batch.schema, *UNIT_COLUMNS]))

    def _shares(self, batch: pa.RecordBatch) -> np.ndarray:
        """The shares of a unit, by row."""
        size = batch.column("bytesToRead").to_numpy(zero_copy_only=False).astype(np.float64)
        seconds = estimated_seconds(size, batch.column("requests").to_numpy(zero_copy_only=False))
        shares: np.ndarray = np.maximum(np.maximum(seconds / self.seconds, size / self.most_bytes), 1 / _MOST_SEGMENTS)
        return shares

    def _finer_at_first(self, units: np.ndarray) -> np.ndarray:
        first = _FIRST_SECONDS / SECONDS_PER_UNIT
        finer: np.ndarray = np.where(units < first, units * _SMALLER, first * _SMALLER + units - first)
        return finer


_Unit = TypeVar("_Unit")


@dataclass(slots=True)
class ChunkSize:
    """How much work is read before its results are committed, so that this takes about a minute, however many cores
    there are just now."""

    work_seconds: float = 16.0
    """The seconds of one core, by estimate."""

    def next_chunk(self, units: Iterator[_Unit], seconds_of: Callable[[_Unit], float]) -> list[_Unit]:
        """The next units that make so much work; none where there are no more."""
        chunk, work = list[_Unit](), 0.0
        for unit in units:
            chunk.append(unit)
            work += seconds_of(unit)
            if work >= self.work_seconds:
                break
        return chunk

    def note(self, work_seconds: float, seconds: float) -> None:
        """Takes how long so much work took."""
        fitting = work_seconds * _SECONDS_PER_CHUNK / max(seconds, 0.1)
        if work_seconds >= self.work_seconds / 2 or fitting < self.work_seconds:
            self.work_seconds = max(min(fitting, 4 * self.work_seconds), self.work_seconds / 4, 1.0)

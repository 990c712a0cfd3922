"""Gathers short runs of bytes at many places of a buffer at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def windows(data: Bytes, width: int) -> Bytes:
    """A view whose row i is `data[i:i + width]`, without rows that would reach beyond the data."""
    rows = max(len(data) - width + 1, 0)
    return as_strided(data, shape=(rows, width), strides=(1, 1))


def rows_at(data: Bytes, positions: Ints, width: int) -> Bytes:
    """A copy of `width` bytes at each position. Positions beyond the data give other bytes: check them separately."""
    if len(data) < width:
        data = np.concatenate([data, np.zeros(width - len(data), np.uint8)])
    # Each window as one value, which numpy copies faster than a row of bytes.
    values = as_strided(data[:width].view(np.dtype((np.void, width))), shape=(len(data) - width + 1,), strides=(1,))
    return values[np.clip(positions, 0, len(values) - 1)].view(np.uint8).reshape(-1, width)


def structs_at(data: Bytes, positions: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A struct of fixed width at each position, as one structured array."""
    return rows_at(data, positions, dtype.itemsize).view(dtype)[:, 0]


def unsigned_varints_at(data: Bytes, positions: Ints, longest: int) -> tuple[Ints, Ints, Flags]:
    """Unsigned varints: their values, the positions after them, and which ended within `longest` bytes: five for 32
    bits, ten for 64."""
    if not len(data):
        return np.zeros_like(positions), positions, np.zeros(len(positions), np.bool_)
    last = len(data) - 1
    first = data[np.clip(positions, 0, last)]
    values = (first & 0x7F).astype(np.int64)
    after = positions + 1
    going_on = np.flatnonzero(first >= 0x80)
    shift = 7
    while len(going_on) and shift < 7 * longest:
        byte = data[np.clip(after[going_on], 0, last)]
        values[going_on] |= (byte & 0x7F).astype(np.int64) << shift
        after[going_on] += 1
        going_on = going_on[byte >= 0x80]
        shift += 7
    ended = np.ones(len(positions), np.bool_)
    ended[going_on] = False
    return values, after, ended


def zigzag(values: Ints) -> Ints:
    """The signed numbers of zigzag-encoded varints."""
    return (values >> 1) & np.int64(0x7FFFFFFFFFFFFFFF) ^ -(values & 1)

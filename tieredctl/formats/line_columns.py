"""The lines of a large file as columns, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import binary_array
from tieredctl.formats.windows import Bytes, Ints

_PIECE_BYTES = 1 << 22
_NEW_LINE = ord("\n")


def line_columns(file: FileIO) -> Iterator[pa.BinaryArray]:
    """All lines without their ends, in order. The last may end with the file. Memory follows the longest line.

    Everything is read into the same memory, after the line that the previous piece left unfinished.
    """
    buffer = np.empty(2 * _PIECE_BYTES, np.uint8)
    held = 0
    while count := file.readinto(buffer[held : held + _PIECE_BYTES].data):
        held += count
        ends = np.flatnonzero(buffer[:held] == _NEW_LINE)
        if len(ends):
            yield _lines(buffer, ends)
            after = int(ends[-1]) + 1
            buffer[: held - after] = buffer[after:held].copy()
            held -= after
        if held > len(buffer) - _PIECE_BYTES:
            buffer = np.concatenate([buffer, np.empty_like(buffer)])
    if held:
        yield _lines(buffer, np.array([held]))


def _lines(buffer: Bytes, ends: Ints) -> pa.BinaryArray:
    return binary_array(buffer, np.append(0, ends[:-1] + 1), ends)

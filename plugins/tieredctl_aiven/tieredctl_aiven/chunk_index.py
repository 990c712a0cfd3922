"""Maps bytes of a stored log to bytes of the log that the broker wrote (the plugin's ChunkIndex).

The log is cut into chunks of one size; the last may be shorter. The chunks are transformed and stored in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.windows import Ints

LARGEST_LIST = 10 << 20
"""The plugin rejects a longer list of chunk sizes."""
_LARGEST_INT = (1 << 31) - 1
_COUNT_BYTES = _VALUE_BYTES = 4
_WIDTHS = range(1, 5)


class StoredChunks(Protocol):
    """The sizes of transformed chunks."""

    def end(self, chunk: int) -> int:
        """Where in the object a chunk ends, and the next begins."""
        ...

    def whole(self, size: int) -> int:
        """How many complete chunks an object of this size holds."""
        ...


@dataclass(frozen=True, slots=True)
class FixedChunks:
    """Chunks that are stored with one size, except the last."""

    count: int
    size: int
    last_size: int

    def end(self, chunk: int) -> int:
        return self.size * chunk + (self.last_size if chunk == self.count - 1 else self.size)

    def whole(self, size: int) -> int:
        if size >= self.end(self.count - 1):
            return self.count
        return min(size // self.size, self.count - 1) if self.size else 0


@dataclass(frozen=True, eq=False, slots=True)
class VariableChunks:
    """Chunks that each have a size of their own."""

    ends: Ints

    def end(self, chunk: int) -> int:
        return int(self.ends[chunk])

    def whole(self, size: int) -> int:
        return int(np.searchsorted(self.ends, size, side="right"))


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """Chunks are counted from 0. All ranges begin with their first byte and end before `end`."""

    chunk_size: int
    file_size: int
    stored: StoredChunks

    @property
    def count(self) -> int:
        return chunk_count(self.file_size, self.chunk_size)

    @property
    def stored_size(self) -> int:
        """How many bytes the object has."""
        return self.stored.end(self.count - 1) if self.count else 0

    def covering(self, start: int, end: int) -> range:
        """The chunks that hold the log's bytes `start` to `end`, of which there is at least one."""
        return range(start // self.chunk_size, (end - 1) // self.chunk_size + 1)

    def original_range(self, chunk: int) -> tuple[int, int]:
        """The chunk's range of the log."""
        return chunk * self.chunk_size, min((chunk + 1) * self.chunk_size, self.file_size)

    def stored_range(self, chunk: int) -> tuple[int, int]:
        """The chunk's range of the object."""
        return self.stored.end(chunk - 1) if chunk else 0, self.stored.end(chunk)

    def stored_size_of(self, chunk: int) -> int:
        """How many bytes of the object a chunk takes; none where the log is empty."""
        start, end = self.stored_range(chunk) if self.count else (0, 0)
        return end - start

    def recoverable(self, size: int) -> int:
        """How many bytes of the log's beginning the first `size` bytes of the object yield."""
        return min(self.stored.whole(size) * self.chunk_size, self.file_size) if self.count else 0


def chunk_count(file_size: int, chunk_size: int) -> int:
    """How many chunks a file is cut into."""
    return -(-file_size // chunk_size)


def decode_chunk_sizes(data: bytes, count: int) -> Ints:
    """The list of transformed sizes as the plugin's ChunkSizesBinaryCodec writes it, which must have `count` values.
    Raises DecodeError."""
    claimed = _integer(data, 0)
    if claimed != count:
        raise DecodeError(f"the list claims {claimed} chunks where the log has {count}", 0)
    if count <= 1:
        values = [_integer(data, _COUNT_BYTES)] if count else []
        return _checked(np.array(values, np.int64), data, _COUNT_BYTES + _VALUE_BYTES * count)
    base, position = _integer(data, _COUNT_BYTES), _COUNT_BYTES + _VALUE_BYTES
    width = data[position] if position < len(data) else 0
    if width not in _WIDTHS:
        raise DecodeError(f"chunk sizes of {width} bytes", position)
    position += 1
    end = position + (count - 1) * width
    if end > len(data):
        raise DecodeError("the list of chunk sizes is truncated", len(data))
    digits = np.frombuffer(data, np.uint8, (count - 1) * width, position).reshape(-1, width)
    differences = digits.astype(np.int64) @ (1 << 8 * np.arange(width - 1, -1, -1, dtype=np.int64))
    return _checked(np.append(differences + base, _integer(data, end)), data, end + _VALUE_BYTES)


def encode_chunk_sizes(sizes: Sequence[int]) -> bytes:
    """The list as ChunkSizesBinaryCodec writes it: a base, and how much each size but the last is above it, in as few
    bytes as they need."""
    count = len(sizes).to_bytes(_COUNT_BYTES, "big")
    if len(sizes) <= 1:
        return count + b"".join(size.to_bytes(_VALUE_BYTES, "big") for size in sizes)
    *others, last = sizes
    base = min(others)
    width = max((max(others) - base).bit_length() + 7, 8) // 8
    listed = b"".join((size - base).to_bytes(width, "big") for size in others)
    values = base.to_bytes(_VALUE_BYTES, "big") + bytes([width]) + listed + last.to_bytes(_VALUE_BYTES, "big")
    return count + values


def _checked(sizes: Ints, data: bytes, end: int) -> Ints:
    if end != len(data):
        raise DecodeError("bytes left over after the list of chunk sizes", end)
    if ((sizes < 0) | (sizes > _LARGEST_INT)).any():
        raise DecodeError("an impossible chunk size", _COUNT_BYTES)
    return sizes


def _integer(data: bytes, position: int) -> int:
    if position + _VALUE_BYTES > len(data):
        raise DecodeError("the list of chunk sizes is truncated", len(data))
    return int.from_bytes(data[position : position + _VALUE_BYTES], "big", signed=True)

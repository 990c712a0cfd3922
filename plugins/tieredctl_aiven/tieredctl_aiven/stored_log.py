"""The log of a segment, read from its object chunk by chunk, with each chunk's transformation undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tieredctl.errors import DecodeError
from tieredctl.ports.layout import DamagedRange
from tieredctl.ports.object_store import ObjectStore
from tieredctl_aiven.chunk_index import ChunkIndex

UndoChunk = Callable[[memoryview, int], bytes]
"""(a chunk as stored, its size in bytes as the broker wrote it) -> that chunk. Raises DecodeError."""
_CUT = "the object ends before"


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The object."""

    store: ObjectStore
    key: str

    def read(self, start: int, end: int) -> bytes:
        """The object's bytes; fewer where it ends before `end`."""
        return self.store.read(self.key, start, end)

    def cut(self, sizes: Iterator[int], piece_size: int) -> Iterator[memoryview]:
        """The object from its beginning, in parts of these sizes; a part is short where the object ends in it."""
        pieces = self.store.stream(self.key, chunk_size=piece_size)
        left = memoryview(b"")
        for size in sizes:
            if len(left) < size:
                left = _gathered(left, pieces, size)
            yield left[:size]
            left = left[size:]


def _gathered(left: memoryview, pieces: Iterator[bytes], size: int) -> memoryview:
    """What is left, and more pieces up to `size` bytes, as far as there are any."""
    gathered: list[bytes | memoryview] = [left] if left else []
    length = len(left)
    while length < size and (piece := next(pieces, None)):
        gathered.append(piece)
        length += len(piece)
    return memoryview(gathered[0] if len(gathered) == 1 else b"".join(gathered))


@dataclass(frozen=True, slots=True)
class TransformedLog:
    """A log whose chunks are compressed, encrypted or both."""

    chunks: ChunkIndex
    stored: StoredBytes
    undo: UndoChunk

    def read(self, start: int, end: int) -> bytes:
        """The log's bytes `start` to `end`, of which there is at least one. Raises DamagedRange for the first
        damaged chunk among them, and all damaged ones that directly follow it."""
        covering = self.chunks.covering(start, end)
        base = self.chunks.stored_range(covering[0])[0]
        stored = memoryview(self.stored.read(base, self.chunks.stored_range(covering[-1])[1]))
        pieces: list[bytes] = []
        for number in covering:
            try:
                pieces.append(self._chunk(number, stored, base))
            except DecodeError as error:
                after = self._next_sound(number + 1, covering.stop, stored, base)
                raise self._damaged(number, after, error) from None
        first = self.chunks.original_range(covering[0])[0]
        joined = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return joined[start - first : end - first]

    def pieces(self, size: int) -> Iterator[bytes]:
        """The whole log, in pieces of whole chunks: about `size` bytes, or one chunk where it is larger. Raises
        DamagedRange for the first chunk that is damaged."""
        chunks, together = self.chunks, max(size // self.chunks.chunk_size, 1)
        sizes = (chunks.stored_size_of(number) for number in range(chunks.count))
        pieces: list[bytes] = []
        # If all chunks have one size, pieces of this size need not be joined.
        for number, stored in enumerate(self.stored.cut(sizes, max(chunks.stored_size_of(0), size))):
            try:
                pieces.append(self._undo(number, stored))
            except DecodeError as error:
                raise self._damaged(number, number + 1, error) from None
            if len(pieces) == together:
                yield pieces[0] if together == 1 else b"".join(pieces)
                pieces.clear()
        if pieces:
            yield b"".join(pieces)

    def recoverable(self, stored_size: int) -> int:
        """How many bytes of the log the first bytes of the object yield."""
        return self.chunks.recoverable(stored_size)

    def _chunk(self, number: int, stored: memoryview, base: int) -> bytes:
        """A chunk from the bytes that are stored from `base` on."""
        start, end = self.chunks.stored_range(number)
        return self._undo(number, stored[start - base : end - base])

    def _undo(self, number: int, stored: memoryview) -> bytes:
        if len(stored) < self.chunks.stored_size_of(number):
            raise DecodeError(_CUT, 0)
        first, after = self.chunks.original_range(number)
        return self.undo(stored, after - first)

    def _next_sound(self, number: int, end: int, stored: memoryview, base: int) -> int:
        """The next sound chunk from this one on; `end` where none is."""
        while number < end:
            try:
                self._chunk(number, stored, base)
            except DecodeError:
                number += 1
            else:
                break
        return number

    def _damaged(self, first: int, after: int, error: DecodeError) -> DamagedRange:
        """The ranges of the chunks from `first` up to, not including, another."""
        original = self.chunks.original_range(first)[0], self.chunks.original_range(after - 1)[1]
        stored = self.chunks.stored_range(first)[0], self.chunks.stored_range(after - 1)[1]
        return DamagedRange(error.reason, original, stored)


@dataclass(frozen=True, slots=True)
class PlainLog:
    """A log that is stored as it is."""

    size: int
    stored: StoredBytes

    def read(self, start: int, end: int) -> bytes:
        """As `TransformedLog` does."""
        found = self.stored.read(start, end)
        self._demand_end(start + len(found), end)
        return found

    def pieces(self, size: int) -> Iterator[bytes]:
        """The whole log, in pieces of at most `size` bytes."""
        read = 0
        for piece in self.stored.store.stream(self.stored.key, chunk_size=size):
            within = piece[: self.size - read]
            read += len(within)
            if within:
                yield within
            if read == self.size:
                return
            del piece, within  # before the next is read: its memory can serve again
        self._demand_end(read, self.size)

    def recoverable(self, stored_size: int) -> int:
        """As `TransformedLog` does."""
        return min(stored_size, self.size)

    def _demand_end(self, found: int, end: int) -> None:
        if found < end:
            raise DamagedRange(_CUT, (found, end), (found, end))

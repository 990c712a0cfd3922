"""A segment in Aiven's three objects: log, indexes and manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.compression import most_unfolded
from tieredctl.formats.zstd_frame import decompress_zstd
from tieredctl.ports.layout import AlteredObject, DamagedRange, Part
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore
from tieredctl_aiven.chunk_index import ChunkIndex
from tieredctl_aiven.manifest import LARGEST_MANIFEST, Encryption, SegmentManifest, StoredIndex, read_manifest

_INDEXES_READ_AT_ONCE = 1 << 20
"""An object of indexes up to this size is read once for all of them."""

OpenDataKey = Callable[[Encryption], bytes]
"""Raises TieredctlError `private-key` without the right key, DecodeError where the data key was altered."""


@dataclass(frozen=True)
class ObjectsReader:
    """A `SegmentReader` that reads the manifest once, and of the other objects what is requested."""

    store: ObjectStore
    keys: Mapping[Part, str]
    open_data_key: OpenDataKey

    def parts(self) -> dict[Part, int]:
        if self._size_of(Part.MANIFEST) is None:
            return {}
        _ = self._undo  # report a wrong private key before anything else
        self._demand_that_something_decrypts()
        sizes = {}
        if self._log_object_size is not None:
            sizes[Part.LOG] = self._log.recoverable(self._log_object_size)
        end = self._indexes_object_size
        if end is not None:
            indexes = self._manifest.indexes.items()
            sizes |= {part: self._manifest.index_size(part) for part, index in indexes if index.end <= end}
        return sizes

    def contradictions(self) -> list[AlteredObject]:
        altered = []
        log, indexes = self._log_object_size, self._indexes_object_size
        if log is not None and log > self._manifest.chunks.stored_size:
            altered.append(self._contradiction(Part.LOG, log, self._manifest.chunks.stored_size))
        if indexes is not None and indexes != self._manifest.indexes_size:
            altered.append(self._contradiction(Part.INDEXES, indexes, self._manifest.indexes_size))
        return altered

    def chunk_bytes(self) -> int:
        return self._log.chunk_bytes

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        if part is not Part.LOG:
            return self._read_index(part)[start:end]
        size = self._manifest.chunks.file_size
        end = size if end is None else min(end, size)
        return self._log.read(start, end) if start < end else b""

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        if part is Part.LOG:
            yield from self._log.pieces(chunk_size)
        else:
            yield from filter(None, [self._read_index(part)])

    def _demand_that_something_decrypts(self) -> None:
        """If nothing does, the manifest is at fault, not each of the chunks. Raises DecodeError."""
        if self._manifest.encryption is None or self._indexes_object_size != self._manifest.indexes_size:
            return
        written = [part for part in self._manifest.indexes if self._manifest.index_size(part)]
        if written and not any(map(self._decrypts, written)) and not self._first_chunk_decrypts():
            raise DecodeError("no part of the segment decrypts with the manifest's data key and aad", 0)

    def _decrypts(self, part: Part) -> bool:
        try:
            self._read_index(part)
        except DecodeError:
            return False
        return True

    def _first_chunk_decrypts(self) -> bool:
        if self._log_object_size is None:
            return True  # it cannot be judged
        try:
            self.read(Part.LOG, 0, 1)
        except DecodeError:
            return False
        return True

    @cached_property
    def _manifest(self) -> SegmentManifest:
        return read_manifest(self.store.read(self.keys[Part.MANIFEST], 0, LARGEST_MANIFEST + 1))

    @cached_property
    def _log(self) -> PlainLog | TransformedLog:
        manifest, stored = self._manifest, StoredBytes(self.store, self.keys[Part.LOG])
        if not manifest.compression and manifest.encryption is None:
            return PlainLog(manifest.chunks.file_size, stored)
        return TransformedLog(manifest.chunks, stored, self._undo_chunk)

    def _undo_chunk(self, stored: memoryview, size: int) -> bytes:
        return self._undo(stored, size, compression=self._manifest.compression)

    @cached_property
    def _undo(self) -> Undo:
        encryption = self._manifest.encryption
        return undo(self.open_data_key(encryption), encryption.aad) if encryption else undo()

    @cached_property
    def _log_object_size(self) -> int | None:
        return self._size_of(Part.LOG)

    @cached_property
    def _indexes_object_size(self) -> int | None:
        return self._size_of(Part.INDEXES)

    def _size_of(self, part: Part) -> int | None:
        stored = self.store.head(self.keys[part])
        return stored.size if stored else None

    def _contradiction(self, part: Part, size: int, claimed: int) -> AlteredObject:
        message = f"{self.keys[part]} has {size} bytes, but its manifest says {claimed}"
        return AlteredObject(part, message, min(size, claimed))

    def _read_index(self, part: Part) -> bytes:
        index = self._manifest.indexes.get(part)
        if index is None:
            raise TieredctlError(
                ErrorCode.OBJECT_MISSING, f"The segment has no {part}: {self.keys[Part.MANIFEST]} does not name one."
            )
        stored = self._stored_index(index)
        if not stored:
            return b""
        try:
            return self._undo(memoryview(stored), self._manifest.index_size(part), compression=False)
        except DecodeError as error:
            where = f"bytes {index.position} to {index.end - 1} of the object were altered"
            raise DecodeError(f"{where}: {error.reason}", 0) from None

    def _stored_index(self, index: StoredIndex) -> bytes:
        if self._manifest.indexes_size <= _INDEXES_READ_AT_ONCE:
            stored = self._all_indexes[index.position : index.end]
        else:
            stored = self.store.read(self.keys[Part.INDEXES], index.position, index.end)
        if len(stored) < index.end - index.position:
            raise DecodeError(f"the object of indexes ends before its byte {index.end}", 0)
        return stored

    @cached_property
    def _all_indexes(self) -> bytes:
        return self.store.read(self.keys[Part.INDEXES], 0, self._manifest.indexes_size)


_VECTOR_BYTES = 12
Decrypt = Callable[[memoryview], bytes]


class Undo(Protocol):
    """Returns a chunk as the broker wrote it, given its size in bytes there. Raises DecodeError."""

    def __call__(self, stored: memoryview, size: int, *, compression: bool) -> bytes: ...


def undo(data_key: bytes | None = None, aad: bytes = b"") -> Undo:
    """Gives what undoes the transforms of a segment with this data key, or without one of a segment that is not
    encrypted."""
    decrypt: Decrypt = bytes if data_key is None else _decryption(data_key, aad)

    def undo_one(stored: memoryview, size: int, *, compression: bool) -> bytes:
        chunk = decrypt(stored)
        if compression:
            chunk = decompress_zstd(memoryview(chunk), min(size, most_unfolded(len(chunk))))
        if len(chunk) != size:
            raise DecodeError(f"the chunk has {len(chunk)} bytes where the broker wrote {size}", 0)
        return chunk

    return undo_one


def _decryption(data_key: bytes, aad: bytes) -> Decrypt:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher = AESGCM(data_key)

    def decrypt(stored: memoryview) -> bytes:
        try:
            return cipher.decrypt(stored[:_VECTOR_BYTES], stored[_VECTOR_BYTES:], aad)
        except (InvalidTag, ValueError):  # a truncated vector is invalid
            raise DecodeError("AES-GCM rejects the bytes", 0) from None

    return decrypt


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

    @property
    def chunk_bytes(self) -> int:
        """As `SegmentReader` has it."""
        return self.chunks.chunk_size

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

    @property
    def chunk_bytes(self) -> int:
        """As `SegmentReader` has it."""
        return 1

    def read(self, start: int, end: int) -> bytes:
        """As `TransformedLog` does."""
        data = self.stored.read(start, end)
        self._demand_end(start + len(data), end)
        return data

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

    def _demand_end(self, reached: int, end: int) -> None:
        if reached < end:
            raise DamagedRange(_CUT, (reached, end), (reached, end))

"""A segment in Aiven's three objects: log, indexes and manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ports.layout import AlteredObject, Part
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore
from tieredctl_aiven.manifest import LARGEST_MANIFEST, Encryption, SegmentManifest, StoredIndex, read_manifest
from tieredctl_aiven.stored_log import PlainLog, StoredBytes, TransformedLog
from tieredctl_aiven.transformation import Undo, undo

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
        found = {}
        if self._log_object_size is not None:
            found[Part.LOG] = self._log.recoverable(self._log_object_size)
        end = self._indexes_object_size
        if end is not None:
            indexes = self._manifest.indexes.items()
            found |= {part: self._manifest.index_size(part) for part, index in indexes if index.end <= end}
        return found

    def contradictions(self) -> list[AlteredObject]:
        found = []
        log, indexes = self._log_object_size, self._indexes_object_size
        if log is not None and log > self._manifest.chunks.stored_size:
            found.append(self._contradiction(Part.LOG, log, self._manifest.chunks.stored_size))
        if indexes is not None and indexes != self._manifest.indexes_size:
            found.append(self._contradiction(Part.INDEXES, indexes, self._manifest.indexes_size))
        return found

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
        found = self.store.head(self.keys[part])
        return found.size if found else None

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

"""Objects in memory: the smallest store that fulfils the contract, for tests and trials."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from threading import RLock

from tieredctl.ports.object_store import (
    STREAM_CHUNK_BYTES,
    UPLOAD_PART_BYTES,
    Capability,
    Deletion,
    DeletionOutcome,
    Pieces,
    StoredObject,
)
from tieredctl.storage.no_multipart_uploads import NoMultipartUploads
from tieredctl.storage.refusals import demand_batch, object_missing
from tieredctl.storage.unversioned import UnversionedStore
from tieredctl.storage.upload_parts import Upload


class MemoryStore(NoMultipartUploads, UnversionedStore):
    """A `WritableObjectStore` that starts empty. Pickling copies what it holds."""

    url = "memory:"
    parallel_reads = 1
    capabilities = frozenset(Capability) - {Capability.MULTIPART_UPLOADS}

    def __init__(self) -> None:
        self._objects: dict[str, tuple[StoredObject, bytes]] = {}
        self._writes = 0
        self._writing = RLock()

    def __getstate__(self) -> dict[str, object]:
        with self._writing:
            return {"_objects": dict(self._objects), "_writes": self._writes}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._writing = RLock()

    def put(self, key: str, data: bytes, last_modified_ms: int = 0) -> StoredObject:
        """Makes an object, or replaces it, with a given time."""
        with self._writing:
            self._writes += 1
            stored = StoredObject(key, len(data), last_modified_ms, str(self._writes))
            self._objects[key] = (stored, data)
            return stored

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        for key in sorted(self._objects):
            stored = self.head(key) if key.startswith(prefix) and key > start_after else None
            if stored:
                yield stored

    def head(self, key: str) -> StoredObject | None:
        stored, _ = self._objects.get(key, (None, b""))
        return stored

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if key not in self._objects:
            raise object_missing(self.url, key)
        return self._objects[key][1][start:end]

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        data = self.read(key, start)
        for position in range(0, len(data), chunk_size):
            yield data[position : position + chunk_size]

    def write(self, key: str, data: bytes) -> StoredObject:
        return self.put(key, data, self.clock_ms())

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        with self._writing:
            return None if key in self._objects else self.put(key, data, self.clock_ms())

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        return self.put_if_absent(key, b"".join(Upload(key, size, pieces).parts(part_bytes)))

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        with self._writing:
            return self.put(current.key, data, self.clock_ms()) if self._is_current(current) else None

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        with self._writing:
            if not self._is_current(source):
                return None
            return self.put(key, self.read(source.key), self.clock_ms() if modified_ms is None else modified_ms)

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        demand_batch(objects)
        with self._writing:
            return [self._delete(stored) for stored in objects]

    def _delete(self, stored: StoredObject) -> Deletion:
        if stored.key in self._objects and not self._is_current(stored):
            return Deletion(stored, DeletionOutcome.CHANGED)
        self._objects.pop(stored.key, None)
        return Deletion(stored, DeletionOutcome.GONE)

    def clock_ms(self) -> int:
        """The store's own time, in ms since the epoch."""
        return time.time_ns() // 1_000_000

    def _is_current(self, stored: StoredObject) -> bool:
        current = self.head(stored.key)
        return current is not None and current.version == stored.version

"""Objects in memory: the smallest store that keeps the contract, for tests and trials."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.errors import TieredctlError
from tieredctl.storage.protocol import STREAM_CHUNK_BYTES, StoredObject


class MemoryStore:
    """An `ObjectStore` that starts empty. Pickling copies what it holds."""

    url = "memory:"
    parallel_reads = 1

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, int]] = {}

    def put(self, key: str, data: bytes, last_modified_ms: int = 0) -> None:
        """Makes an object, or replaces it."""
        self._objects[key] = (data, last_modified_ms)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        for key in sorted(self._objects):
            stored = self.head(key) if key.startswith(prefix) and key > start_after else None
            if stored:
                yield stored

    def head(self, key: str) -> StoredObject | None:
        if key not in self._objects:
            return None
        data, last_modified_ms = self._objects[key]
        return StoredObject(key, len(data), last_modified_ms)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if key not in self._objects:
            raise TieredctlError("object-missing", f"There is no object {key} in {self.url}.")
        return self._objects[key][0][start:end]

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        data = self.read(key, start)
        for position in range(0, len(data), chunk_size):
            yield data[position : position + chunk_size]

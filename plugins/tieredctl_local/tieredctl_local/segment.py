"""A segment whose parts are objects of their own, bytes unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.layout import AlteredObject, Part
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore


@dataclass(frozen=True, slots=True)
class FilesetReader:
    """A `SegmentReader` over the files of one segment (Kafka's RemoteLogSegmentFileset)."""

    store: ObjectStore
    keys: Mapping[Part, str]

    def parts(self) -> dict[Part, int]:
        stored = {part: self.store.head(key) for part, key in self.keys.items()}
        return {part: found.size for part, found in stored.items() if found}

    def contradictions(self) -> list[AlteredObject]:
        return []

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        return self.store.read(self._key(part), start, end)

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        return self.store.stream(self._key(part), chunk_size=chunk_size)

    def _key(self, part: Part) -> str:
        if part not in self.keys:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, f"This layout stores no {part} of a segment.")
        return self.keys[part]

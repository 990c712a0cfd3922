"""Segments as they would be with other objects, or other parts: what is proven before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import ORIGINAL_PARTS, AlteredObject, Part, SegmentReader
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore, StoredObject
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.ports.segment_objects import SegmentObjects


@dataclass(frozen=True, slots=True)
class StoreWith(ReadOnlyStore):
    """Another store, with other bytes under some keys, and without the objects of some."""

    objects: Mapping[str, bytes] = field(default_factory=dict)
    hidden: Collection[str] = ()

    def head(self, key: str) -> StoredObject | None:
        if key in self.hidden:
            return None
        data = self.objects.get(key)
        return self.store.head(key) if data is None else StoredObject(key, len(data), 0, sha256(data).hexdigest())

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._demand_shown(key)
        data = self.objects.get(key)
        return self.store.read(key, start, end) if data is None else data[start:end]

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        self._demand_shown(key)
        data = self.objects.get(key)
        return self.store.stream(key, start, chunk_size) if data is None else _pieces(data[start:], chunk_size)

    def _demand_shown(self, key: str) -> None:
        if key in self.hidden:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, f"{key} does not exist.")


@dataclass(frozen=True, slots=True)
class LayoutWithParts:
    """A layout, but for one segment, whose parts are these, as the broker wrote them."""

    layout: SegmentObjects
    segment_id: str
    parts: Mapping[Part, bytes]

    @property
    def name(self) -> str:
        """The layout's."""
        return self.layout.name

    def promised_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]:
        if segment.segment_id != self.segment_id:
            return self.layout.promised_objects(segment)
        return {part: part.value for part in ORIGINAL_PARTS if part is not Part.TRANSACTION_INDEX}

    def optional_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]:
        if segment.segment_id != self.segment_id:
            return self.layout.optional_objects(segment)
        return {Part.TRANSACTION_INDEX: Part.TRANSACTION_INDEX.value}

    def open_segment(self, store: ObjectStore, segment: RemoteLogSegmentMetadata, /) -> SegmentReader:
        if segment.segment_id != self.segment_id:
            return self.layout.open_segment(store, segment)
        return PartsReader(self.parts)


@dataclass(frozen=True, slots=True)
class PartsReader:
    """A `SegmentReader` of parts in memory."""

    held: Mapping[Part, bytes]

    def parts(self) -> Mapping[Part, int]:
        return {part: len(data) for part, data in self.held.items()}

    def contradictions(self) -> Sequence[AlteredObject]:
        return ()

    def chunk_bytes(self) -> int:
        return 1

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        if part not in self.held:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, f"There is no {part}.")
        return self.held[part][start:end]

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        return _pieces(self.read(part), chunk_size)


def _pieces(data: bytes, chunk_size: int) -> Iterator[bytes]:
    for start in range(0, len(data), chunk_size):
        yield data[start : start + chunk_size]

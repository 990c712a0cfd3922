"""A read-only store, for commands that change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from tieredctl.ports.object_store import (
    STREAM_CHUNK_BYTES,
    Capability,
    KeptVersion,
    MultipartUpload,
    ObjectStore,
    Retention,
    StoredObject,
)


@dataclass(frozen=True, slots=True)
class StoreAround:
    """The reading half of another store, which answers whatever a subclass does not answer itself."""

    store: ObjectStore

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.store.capabilities

    @property
    def parallel_reads(self) -> int:
        return self.store.parallel_reads

    @property
    def url(self) -> str:
        return self.store.url

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return self.store.list(prefix, start_after)

    def head(self, key: str) -> StoredObject | None:
        return self.store.head(key)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        return self.store.read(key, start, end)

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        return self.store.stream(key, start, chunk_size)

    def reconnected(self) -> Self:
        return replace(self, store=self.store.reconnected())

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        return self.store.checksums(stored)

    def time_ms(self) -> int | None:
        return self.store.time_ms()

    def retention(self) -> Retention:
        return self.store.retention()

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return self.store.kept_versions(prefix)

    def read_version(self, kept: KeptVersion) -> bytes:
        return self.store.read_version(kept)

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        return self.store.soft_deleted(key)

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        return self.store.multipart_uploads(prefix)

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        return self.store.multipart_upload_bytes(upload)


@dataclass(frozen=True, slots=True)
class ReadOnlyStore(StoreAround):
    """Another store without the methods that change something, so that none can be called by mistake."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.store.capabilities & {Capability.MULTIPART_UPLOADS}


@dataclass(frozen=True, slots=True)
class AsListed(ReadOnlyStore):
    """Another store that is not asked what a listing already said of some objects.

    A listing grows old: what looks wrong is decided by the store itself.
    """

    listed: Mapping[str, StoredObject] = field(default_factory=dict)
    """By key."""

    @classmethod
    def of(cls, store: ObjectStore, listed: Iterable[StoredObject]) -> AsListed:
        return cls(store, {stored.key: stored for stored in listed})

    def head(self, key: str) -> StoredObject | None:
        return self.listed.get(key) or self.store.head(key)

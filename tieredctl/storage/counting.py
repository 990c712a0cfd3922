"""Wrappers of a store that count requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Self

from tieredctl.ports.object_store import (
    STREAM_CHUNK_BYTES,
    UPLOAD_PART_BYTES,
    Deletion,
    KeptVersion,
    MultipartUpload,
    ObjectStore,
    Pieces,
    Retention,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.ports.read_only_store import StoreAround

_LISTED_BY_ONE_REQUEST = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class CountingReader(StoreAround):
    """Another store, read-only, with a count of requests to it: a listing's pages of a thousand objects, the objects
    of deletions, and the calls of anything else.

    Below a store that retries, it counts the retries too; around such a store it does not.
    """

    _requests: Counter[str] = field(default_factory=Counter)
    _counting: Lock = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type[Self], tuple[ObjectStore]]:
        """A copy counts separately, from zero."""
        return type(self), (self.store,)

    @property
    def requests(self) -> dict[str, int]:
        """How many requests there were, by the name of the method that made them."""
        with self._counting:
            return dict(self._requests)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self._count("list")
        for number, stored in enumerate(self.store.list(prefix, start_after)):
            if number and number % _LISTED_BY_ONE_REQUEST == 0:
                self._count("list")
            yield stored

    def head(self, key: str) -> StoredObject | None:
        self._count("head")
        return self.store.head(key)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._count("read")
        return self.store.read(key, start, end)

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        self._count("stream")
        yield from self.store.stream(key, start, chunk_size)

    def reconnected(self) -> Self:
        """Counts separately, from zero."""
        return type(self)(self.store.reconnected())

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        self._count("checksums")
        return self.store.checksums(stored)

    def time_ms(self) -> int | None:
        self._count("time_ms")
        return self.store.time_ms()

    def retention(self) -> Retention:
        self._count("retention")
        return self.store.retention()

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        self._count("kept_versions")
        yield from self.store.kept_versions(prefix)

    def read_version(self, kept: KeptVersion) -> bytes:
        self._count("read_version")
        return self.store.read_version(kept)

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        self._count("soft_deleted")
        return self.store.soft_deleted(key)

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        self._count("multipart_uploads")
        yield from self.store.multipart_uploads(prefix)

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        self._count("multipart_upload_bytes")
        return self.store.multipart_upload_bytes(upload)

    def _count(self, method: str, requests: int = 1) -> None:
        with self._counting:
            self._requests[method] += requests


@dataclass(frozen=True, slots=True, eq=False)
class CountingStore(CountingReader):
    """Counts the requests of a writable store."""

    store: WritableObjectStore

    def write(self, key: str, data: bytes) -> StoredObject:
        self._count("write")
        return self.store.write(key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self._count("put_if_absent")
        return self.store.put_if_absent(key, data)

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        self._count("upload")
        return self.store.upload(key, size, pieces, part_bytes)

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        self._count("replace")
        return self.store.replace(current, data)

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        self._count("copy")
        return self.store.copy(source, key, modified_ms)

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        self._count("delete", len(objects))
        return self.store.delete(objects)

    def delete_version(self, kept: KeptVersion) -> None:
        self._count("delete_version")
        self.store.delete_version(kept)

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        self._count("abort_multipart_upload")
        self.store.abort_multipart_upload(upload)

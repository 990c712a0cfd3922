"""A wrapper of a store that logs each request: what was asked, how much came or went, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from tieredctl.model.counted import counted
from tieredctl.ports.object_store import (
    STREAM_CHUNK_BYTES,
    UPLOAD_PART_BYTES,
    Deletion,
    DeletionOutcome,
    KeptVersion,
    MultipartUpload,
    Pieces,
    Retention,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.ports.read_only_store import StoreAround
from tieredctl.process.tracing import Asked, is_traced, log_answer, traced

_ASKER = "tieredctl.storage"
_Piece = TypeVar("_Piece")


def traced_store(store: WritableObjectStore) -> WritableObjectStore:
    """The store itself where nobody looks at what it is asked."""
    return TracingStore(store) if is_traced(_ASKER) else store


@dataclass(frozen=True, slots=True)
class TracingStore(StoreAround):
    """Another store, whose requests are logged. Below a store that retries, it logs the retries too."""

    store: WritableObjectStore

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        after = f" after {start_after}" if start_after else ""
        return self._streamed(f"list {prefix or 'all'}{after}", self.store.list(prefix, start_after), "object")

    def head(self, key: str) -> StoredObject | None:
        with self._asked(f"head {key}") as asked:
            stored = self.store.head(key)
            asked.answer = "no object" if stored is None else _bytes(stored.size)
        return stored

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        span = f" {start}-{'' if end is None else end}" if start or end is not None else ""
        with self._asked(f"get {key}{span}") as asked:
            data = self.store.read(key, start, end)
            asked.answer = _bytes(len(data))
        return data

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        span = f" {start}-" if start else ""
        return self._streamed(f"get {key}{span}", self.store.stream(key, start, chunk_size), "byte", len)

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        with self._asked(f"checksums {stored.key}"):
            return self.store.checksums(stored)

    def time_ms(self) -> int | None:
        with self._asked("time"):
            return self.store.time_ms()

    def retention(self) -> Retention:
        with self._asked("retention"):
            return self.store.retention()

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return self._streamed(f"list versions {prefix}".strip(), self.store.kept_versions(prefix), "version")

    def read_version(self, kept: KeptVersion) -> bytes:
        with self._asked(f"get version {kept.version_id} of {kept.key}") as asked:
            data = self.store.read_version(kept)
            asked.answer = _bytes(len(data))
        return data

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        with self._asked(f"list soft-deleted {key}"):
            return self.store.soft_deleted(key)

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        return self._streamed(f"list uploads {prefix}".strip(), self.store.multipart_uploads(prefix), "upload")

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        with self._asked(f"list parts {upload.key}") as asked:
            size = self.store.multipart_upload_bytes(upload)
            asked.answer = _bytes(size)
        return size

    def write(self, key: str, data: bytes) -> StoredObject:
        with self._asked(f"put {key}") as asked:
            asked.answer = _bytes(len(data))
            return self.store.write(key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        with self._asked(f"put {key} if absent") as asked:
            made = self.store.put_if_absent(key, data)
            asked.answer = _bytes(len(data)) if made else "there is one"
        return made

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        with self._asked(f"upload {key} if absent") as asked:
            made = self.store.upload(key, size, pieces, part_bytes)
            asked.answer = _bytes(size) if made else "there is one"
        return made

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        with self._asked(f"put {current.key} if unchanged") as asked:
            made = self.store.replace(current, data)
            asked.answer = _bytes(len(data)) if made else "it changed"
        return made

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        with self._asked(f"copy {source.key} to {key}") as asked:
            made = self.store.copy(source, key, modified_ms)
            asked.answer = _bytes(source.size) if made else "it changed"
        return made

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        named = objects[0].key if len(objects) == 1 else counted(len(objects), "object")
        with self._asked(f"delete {named}") as asked:
            done = self.store.delete(objects)
            gone = sum(deletion.outcome is DeletionOutcome.GONE for deletion in done)
            asked.answer = f"{gone} gone"
        return done

    def delete_version(self, kept: KeptVersion) -> None:
        with self._asked(f"delete version {kept.version_id} of {kept.key}"):
            self.store.delete_version(kept)

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        with self._asked(f"abort upload {upload.upload_id} of {upload.key}"):
            self.store.abort_multipart_upload(upload)

    def _asked(self, question: str) -> AbstractContextManager[Asked]:
        return traced(_ASKER, self.url, question)

    def _streamed(
        self, question: str, pieces: Iterator[_Piece], what: str, size_of: Callable[[_Piece], int] = lambda _: 1
    ) -> Iterator[_Piece]:
        """What a request gives piece by piece: the time counts in which it was waited for."""
        began, waited, count, ending = time.perf_counter(), 0.0, 0, " so far"
        try:
            while True:
                asked_at = time.perf_counter()
                try:
                    piece = next(pieces)
                except StopIteration:
                    ending = ""
                    return
                except BaseException as error:
                    ending = f", then failed: {error}"
                    raise
                finally:
                    waited += time.perf_counter() - asked_at
                count += size_of(piece)
                yield piece
        finally:
            log_answer(_ASKER, self.url, question, f"{counted(count, what)}{ending}", began, waited)


def _bytes(size: int) -> str:
    return counted(size, "byte")

"""A folder as an object store: the path below it is the key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from stat import S_ISREG
from typing import ClassVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import (
    RESERVED_FOLDER,
    STREAM_CHUNK_BYTES,
    UNFINISHED,
    UPLOAD_PART_BYTES,
    Capability,
    Deletion,
    DeletionOutcome,
    Pieces,
    StoredObject,
)
from tieredctl.process.progress import begin_listing, note_listed
from tieredctl.storage import file_changes
from tieredctl.storage.file_changes import is_absent, path_of, reading_failure, stored_at
from tieredctl.storage.no_multipart_uploads import NoMultipartUploads
from tieredctl.storage.refusals import demand_batch, key_impossible, object_missing
from tieredctl.storage.unversioned import UnversionedStore
from tieredctl.storage.upload_parts import Upload


@dataclass(frozen=True, slots=True)
class FileStore(NoMultipartUploads, UnversionedStore):
    """The regular files below `root`, an absolute path.

    Listing and reading follow links, wherever they lead, as a broker does; a dangling link is not an object, and a
    link to a folder that contains it is not followed. Nothing is changed or copied through a link. Bytes of a name
    that are not UTF-8 appear in the key as lone surrogates (PEP 383).

    Changes are atomic, and exclude each other among the tieredctl processes of one host. Another program may still
    write between the check of a version and the change. Folders are made when keys need them, and stay.
    """

    # More would wait for the interpreter, not for the disk, which the kernel reads ahead.
    parallel_reads: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.MULTIPART_UPLOADS}

    root: str

    def __post_init__(self) -> None:
        """Raises TieredctlError where `root` is not a folder."""
        self._demand_root()

    @property
    def url(self) -> str:
        return f"file:{self.root}"

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self._demand_root()
        begin_listing(prefix, start_after)
        folder, slash, _ = prefix.rpartition("/")
        if slash and path_of(self.root, folder) is None:
            return
        # Keys still to be visited, the next one last. A folder's ends in "/", which is also how it sorts.
        pending = _keys_in(self.root, folder + slash, prefix, start_after)
        while pending:
            key = pending.pop()
            if key.endswith("/"):
                keys = _keys_in(self.root, key, prefix, start_after)
                note_listed(sum(not one.endswith("/") for one in keys))
                pending += keys
            elif stored := stored_at(key, f"{self.root}/{key}"):
                yield stored

    def head(self, key: str) -> StoredObject | None:
        path = path_of(self.root, key)
        stored = stored_at(key, path) if path else None
        if stored is None:
            self._demand_root()
        return stored

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        with self._opened(key) as descriptor:
            size = os.fstat(descriptor).st_size
            return b"".join(_pieces(descriptor, start, size if end is None else min(end, size), STREAM_CHUNK_BYTES))

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        with self._opened(key) as descriptor:
            size = os.fstat(descriptor).st_size
            for piece in _pieces(descriptor, start, size, chunk_size):
                start += len(piece)
                yield piece
            if start < size:
                message = f"{key} in {self.url} was cut to {start} of {size} bytes while it was read."
                raise TieredctlError(ErrorCode.UNREADABLE, message)

    def write(self, key: str, data: bytes) -> StoredObject:
        self._demand_writable(key)
        return file_changes.write(self.root, key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self._demand_writable(key)
        return file_changes.put_if_absent(self.root, key, [data])

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        self._demand_writable(key)
        return file_changes.put_if_absent(self.root, key, Upload(key, size, pieces).parts(part_bytes))

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        self._demand_writable(current.key)
        return file_changes.replace(self.root, current, data)

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        self._demand_writable(key)
        return file_changes.copy(self.root, source, key, modified_ms) if path_of(self.root, source.key) else None

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        demand_batch(objects)
        return [self._deletion(stored) for stored in objects]

    def _deletion(self, stored: StoredObject) -> Deletion:
        path = path_of(self.root, stored.key)
        try:
            self._demand_root()
            unchanged = path is None or file_changes.delete(self.root, stored)
        except TieredctlError as error:
            return Deletion(stored, DeletionOutcome.FAILED, error)
        return Deletion(stored, DeletionOutcome.GONE if unchanged else DeletionOutcome.CHANGED)

    def _demand_writable(self, key: str) -> None:
        self._demand_root()
        if path_of(self.root, key) is None:
            raise key_impossible(self.url, key)

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        path = path_of(self.root, key)
        if path is None:
            raise self._missing(key)
        try:
            # Without O_NONBLOCK, opening a pipe without a writer would block for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise (self._missing(key) if is_absent(path, error) else reading_failure(path, error)) from None
        try:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise self._missing(key)
            yield descriptor
        except OSError as error:
            raise reading_failure(path, error) from None
        finally:
            os.close(descriptor)

    def _missing(self, key: str) -> TieredctlError:
        self._demand_root()
        return object_missing(self.url, key)

    def _demand_root(self) -> None:
        """A store that is gone must not look like a store whose objects are gone."""
        try:
            os.scandir(self.root).close()
        except OSError as error:
            raise reading_failure(self.root, error) from None


def _keys_in(root: str, folder: str, prefix: str, start_after: str) -> list[str]:
    """The keys in a folder that are to be listed or lead to keys that are, in descending order."""
    path = f"{root}/{folder}"
    try:
        with os.scandir(path) as entries:
            keys = [
                folder + (entry.name + "/" if _is_folder(root, folder, entry) else entry.name)
                for entry in entries
                if not (folder.startswith(RESERVED_FOLDER) and entry.name.startswith(UNFINISHED))
            ]
    except OSError as error:
        if is_absent(path, error):
            return []
        raise reading_failure(path, error) from None
    return sorted((key for key in keys if _leads_to_listed(key, prefix, start_after)), reverse=True)


def _is_folder(root: str, folder: str, entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_dir(follow_symlinks=False)
    target = os.path.realpath(entry.path)
    parts = folder.split("/")
    around = {os.path.realpath("/".join((root, *parts[:depth]))) for depth in range(len(parts))}
    return os.path.isdir(target) and target not in around


def _leads_to_listed(key: str, prefix: str, start_after: str) -> bool:
    if not key.endswith("/"):
        return key.startswith(prefix) and key > start_after
    return (key.startswith(prefix) or prefix.startswith(key)) and (key > start_after or start_after.startswith(key))


def _pieces(descriptor: int, start: int, end: int, chunk_size: int) -> Iterator[bytes]:
    while start < end and (piece := os.pread(descriptor, min(chunk_size, end - start), start)):
        start += len(piece)
        yield piece
        del piece  # before the next is read: its memory can serve again

"""Changes to the files below a store's folder: each whole or not at all, and on disk when it returns."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ENOTSUP
from fcntl import LOCK_EX, flock
from typing import BinaryIO
from uuid import uuid4

from tieredctl.storage.file_paths import UNFINISHED, stored_as, stored_at, writing_failure
from tieredctl.storage.protocol import StoredObject


def write(root: str, key: str, path: str, data: bytes) -> StoredObject:
    """Makes the file, or replaces what is there. Raises TieredctlError, as all of these do, where it cannot."""
    with _failing_as_unwritable(path), _unfinished_beside(path) as (unfinished, file):
        file.write(data)
        stored = _finished(key, file)
        with _excluding_others(root):
            _rename(unfinished, path)
    return stored


def put_if_absent(root: str, key: str, path: str, data: bytes) -> StoredObject | None:
    """Makes the file; None where there is something."""
    with _failing_as_unwritable(path), _unfinished_beside(path) as (unfinished, file):
        file.write(data)
        stored = _finished(key, file)
        with _excluding_others(root):
            try:
                os.link(unfinished, path)
            except FileExistsError:
                return None
            _sync_folder(path)
    return stored


def replace(root: str, current: StoredObject, path: str, data: bytes) -> StoredObject | None:
    """Gives the file new bytes if it is still the version `current`, else None."""
    if stored_at(current.key, path) != current:
        return None
    with _failing_as_unwritable(path), _unfinished_beside(path) as (unfinished, file):
        file.write(data)
        stored = _finished(current.key, file)
        with _excluding_others(root):
            if stored_at(current.key, path) != current:
                return None
            _rename(unfinished, path)
    return stored


def copy(root: str, source: StoredObject, source_path: str, key: str, path: str) -> StoredObject | None:
    """Puts a copy of the version `source` at `path`, with its mode and, where we may give it away, its owner."""
    if stored_at(source.key, source_path) != source:
        return None
    with _failing_as_unwritable(path), _unfinished_beside(path) as (unfinished, file):
        try:
            with open(source_path, "rb") as original:
                shutil.copyfileobj(original, file, 1 << 20)
                status = os.fstat(original.fileno())
        except FileNotFoundError:  # removed since we looked
            return None
        os.fchmod(file.fileno(), status.st_mode & 0o7777)
        with suppress(PermissionError):
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
        stored = _finished(key, file)
        with _excluding_others(root):
            if stored_as(source.key, status) != source or stored_at(source.key, source_path) != source:
                return None
            _rename(unfinished, path)
    return stored


def delete(root: str, stored: StoredObject, path: str) -> bool:
    """Removes the file if it is still this version; False where it is another one."""
    with _failing_as_unwritable(path), _excluding_others(root):
        found = stored_at(stored.key, path)
        if found is None:
            return True
        if found.version != stored.version:
            return False
        with suppress(FileNotFoundError):
            os.unlink(path)
            _sync_folder(path)
    return True


@contextmanager
def _failing_as_unwritable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise writing_failure(path, error) from None


@contextmanager
def _excluding_others(root: str) -> Iterator[None]:
    descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _unfinished_beside(path: str) -> Iterator[tuple[str, BinaryIO]]:
    """A file to be linked or renamed to `path`; what becomes of it, the name it has here does not stay."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    unfinished = f"{folder}/{UNFINISHED}{uuid4().hex}"
    with open(unfinished, "xb") as file:
        try:
            yield unfinished, file
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)


def _finished(key: str, file: BinaryIO) -> StoredObject:
    file.flush()
    os.fsync(file.fileno())
    return stored_as(key, os.fstat(file.fileno()))


def _rename(unfinished: str, path: str) -> None:
    os.replace(unfinished, path)
    _sync_folder(path)


def _sync_folder(path: str) -> None:
    descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; that is no failure of the change.
        if error.errno not in (EINVAL, ENOTSUP):
            raise
    finally:
        os.close(descriptor)

"""Changes to the files below a store's folder: each atomic, and on disk when it returns.

No link below the store's folder is followed: its target may be outside, or be needed under another key.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTSUP
from fcntl import LOCK_EX, flock
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO, NamedTuple
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import RESERVED_FOLDER, UNFINISHED, StoredObject
from tieredctl.storage.file_readers import give, give_as_in

NO_SUCH_FILE = (ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP)
LONGEST_PATH_BYTES = 4_095
"""The longest path that Linux looks up (PATH_MAX without the final NUL); deeper files can be made step by step."""


def path_of(root: str, key: str) -> str | None:
    """Where an object of this key would be; None for a key that no file below the root can have."""
    if "\0" in key or not {"", ".", ".."}.isdisjoint(key.split("/")):
        return None
    try:
        os.fsencode(key)
    except UnicodeEncodeError:
        return None
    return f"{root}/{key}"


def is_absent(path: str, error: OSError) -> bool:
    """Whether an error says that nothing exists at a path, and not only that the path is too long to look up."""
    return error.errno in NO_SUCH_FILE and len(os.fsencode(path)) <= LONGEST_PATH_BYTES


def stored_at(key: str, path: str) -> StoredObject | None:
    """The object at this path; None where there is no regular file."""
    try:
        status = os.stat(path)
    except OSError as error:
        if is_absent(path, error):
            return None
        raise reading_failure(path, error) from None
    return stored_as(key, status) if S_ISREG(status.st_mode) else None


def stored_as(key: str, status: os.stat_result) -> StoredObject:
    """A regular file as an object. What rewrites a file in place changes its time, what renames over it the inode."""
    version = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return StoredObject(key, status.st_size, status.st_mtime_ns // 1_000_000, version)


def reading_failure(path: str, error: OSError) -> TieredctlError:
    """Why a path cannot be read."""
    if isinstance(error, FileNotFoundError):
        return TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.")
    if isinstance(error, NotADirectoryError):
        return TieredctlError(ErrorCode.PATH_MISSING, f"{path} is not a folder.")
    if isinstance(error, PermissionError):
        return TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{path} may not be read.")
    return TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.")


def writing_failure(path: str, error: OSError) -> TieredctlError:
    """Why a path cannot be changed."""
    if isinstance(error, PermissionError):
        return TieredctlError(
            ErrorCode.PATH_FORBIDDEN, f"{path} may not be changed.", hint="Run as a user who may change it."
        )
    return TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be changed: {error.strerror}.")


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE, _BY_UMASK = 0o600, 0o666
_NO_FOLDER = (*NO_SUCH_FILE, ENOTDIR)


class _Place(NamedTuple):
    """A key's file: its opened folder, and its name there."""

    folder: int
    name: str


class _Unfinished(NamedTuple):
    """A file that is still being written, to be linked or renamed to its key's place."""

    place: _Place
    file: BinaryIO


def write(root: str, key: str, data: bytes) -> StoredObject:
    """Makes the file, or replaces what is there. Raises TieredctlError, as all of these do, where it cannot."""
    with (
        _failing_as_unwritable(root, key),
        _place(root, key, make=True) as place,
        _unfinished(root, place.folder, _BY_UMASK) as (unfinished, file),
    ):
        file.write(data)
        _admit(key, file, place, _status(place))
        stored = _finished(key, file)
        with _excluding_others(root):
            _rename(unfinished, place)
    return stored


def put_if_absent(root: str, key: str, pieces: Iterable[bytes]) -> StoredObject | None:
    """Makes the file; None where one exists."""
    with (
        _failing_as_unwritable(root, key),
        _place(root, key, make=True) as place,
        _unfinished(root, place.folder, _BY_UMASK) as (unfinished, file),
    ):
        file.writelines(pieces)
        _admit(key, file, place, None)
        stored = _finished(key, file)
        with _excluding_others(root):
            try:
                os.link(
                    unfinished.name,
                    place.name,
                    src_dir_fd=unfinished.folder,
                    dst_dir_fd=place.folder,
                    follow_symlinks=False,
                )
            except FileExistsError:
                _demand_object(root, key, place)
                return None
            _sync_folder(place.folder)
    return stored


def replace(root: str, current: StoredObject, data: bytes) -> StoredObject | None:
    """Gives the file new bytes if it is still the version `current`, else None."""
    with _failing_as_unwritable(root, current.key), _place(root, current.key, make=True) as place:
        if _stored(root, current.key, place) != current:
            return None
        with _unfinished(root, place.folder, _BY_UMASK) as (unfinished, file):
            file.write(data)
            _admit(current.key, file, place, _status(place))
            stored = _finished(current.key, file)
            with _excluding_others(root):
                if _stored(root, current.key, place) != current:
                    return None
                _rename(unfinished, place)
    return stored


def copy(root: str, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
    """Puts a copy of the version `source` at `key`, with its mode and, where permitted, its owner.

    Its time is `modified_ms`, or the current time.
    """
    with _opened_source(root, source) as original:
        if original is None:
            return None
        with (
            _failing_as_unwritable(root, key),
            _place(root, key, make=True) as place,
            _unfinished(root, place.folder, _PRIVATE) as (unfinished, file),
        ):
            shutil.copyfileobj(original, file, 1 << 20)
            status = os.fstat(original.fileno())
            give(file.fileno(), status)
            if modified_ms is not None:
                file.flush()
                os.utime(file.fileno(), ns=(modified_ms * 1_000_000,) * 2)
            stored = _finished(key, file)
            with _excluding_others(root):
                if stored_as(source.key, status) != source or _current(root, source.key) != source:
                    return None
                _rename(unfinished, place)
    return stored


def delete(root: str, stored: StoredObject) -> bool:
    """Removes the file if it is still this version; False where it is another one."""
    with _failing_as_unwritable(root, stored.key), _excluding_others(root):
        try:
            with _place(root, stored.key) as place:
                current = _stored(root, stored.key, place)
                if current is not None and current.version != stored.version:
                    return False
                if current is not None:
                    os.unlink(place.name, dir_fd=place.folder)
                    _sync_folder(place.folder)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
    return True


@contextmanager
def _failing_as_unwritable(root: str, key: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise writing_failure(f"{root}/{key}", error) from None


@contextmanager
def _excluding_others(root: str) -> Iterator[None]:
    descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _place(root: str, key: str, *, make: bool = False) -> Iterator[_Place]:
    """Where a key's file is or would be, reached folder by folder, which `make` makes. Raises OSError, TieredctlError
    where one of them is a link."""
    *folders, name = key.split("/")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            is_new = make and _made(folder, descriptor)
            inner = _inner_folder(root, key, folder, descriptor)
            if is_new and not key.startswith(RESERVED_FOLDER):
                give_as_in(descriptor, inner, is_folder=True)
            os.close(descriptor)
            descriptor = inner
        yield _Place(descriptor, name)
    finally:
        os.close(descriptor)


def _made(name: str, folder: int) -> bool:
    """Whether a folder had to be made."""
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _admit(key: str, file: BinaryIO, place: _Place, replaced: os.stat_result | None) -> None:
    """Lets those read a new file who could read the one that it replaces, or else may write into its folder."""
    if replaced is not None and S_ISREG(replaced.st_mode):
        give(file.fileno(), replaced)
    elif not key.startswith(RESERVED_FOLDER):
        give_as_in(place.folder, file.fileno(), is_folder=False)


def _inner_folder(root: str, key: str, name: str, descriptor: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=descriptor)
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR) and S_ISLNK(os.lstat(name, dir_fd=descriptor).st_mode):
            raise _through_a_link(root, key) from None
        raise


def _stored(root: str, key: str, place: _Place) -> StoredObject | None:
    """The object in a place; None where there is nothing or not a file. Raises TieredctlError for a link."""
    status = _status(place)
    if status is not None and S_ISLNK(status.st_mode):
        raise _through_a_link(root, key)
    return stored_as(key, status) if status is not None and S_ISREG(status.st_mode) else None


def _status(place: _Place) -> os.stat_result | None:
    """The status of what is in a place, a link itself; None where there is nothing."""
    try:
        return os.lstat(place.name, dir_fd=place.folder)
    except FileNotFoundError:
        return None


def _demand_object(root: str, key: str, place: _Place) -> None:
    """Raises TieredctlError where a key's place is taken, but not by an object: nothing can be put there."""
    path = f"{root}/{key}"
    if stored_at(key, path) is None and (status := _status(place)) is not None:
        if S_ISLNK(status.st_mode):
            raise _through_a_link(root, key)
        message = f"{path} cannot be made: what is there is not a regular file."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint="Move it elsewhere.")


def _current(root: str, key: str) -> StoredObject | None:
    try:
        with _place(root, key) as place:
            return _stored(root, key, place)
    except OSError as error:
        if error.errno in _NO_FOLDER:
            return None
        raise


@contextmanager
def _opened_source(root: str, source: StoredObject) -> Iterator[BinaryIO | None]:
    """The file of exactly this version, opened; None where it has changed."""
    try:
        with _place(root, source.key) as place:
            if _stored(root, source.key, place) != source:
                yield None
                return
            descriptor = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise reading_failure(f"{root}/{source.key}", error) from None
        yield None
        return
    with open(descriptor, "rb") as file:
        yield file


@contextmanager
def _unfinished(root: str, target: int, mode: int) -> Iterator[_Unfinished]:
    """A file to be linked or renamed into a target folder; its name here is removed in any case."""
    with _place(root, f"{UNFINISHED_FOLDER}{uuid4().hex}", make=True) as apart:
        # A rename cannot cross from one file system to another.
        same_device = os.fstat(apart.folder).st_dev == os.fstat(target).st_dev
        place = apart if same_device else _Place(target, UNFINISHED + apart.name)
        with open(os.open(place.name, _NEW_FILE, mode, dir_fd=place.folder), "wb") as file:
            try:
                remove_leftovers(root, os.fstat(file.fileno()).st_mtime)
                yield _Unfinished(place, file)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(place.name, dir_fd=place.folder)


def _finished(key: str, file: BinaryIO) -> StoredObject:
    file.flush()
    os.fsync(file.fileno())
    return stored_as(key, os.fstat(file.fileno()))


def _rename(unfinished: _Place, place: _Place) -> None:
    os.replace(unfinished.name, place.name, src_dir_fd=unfinished.folder, dst_dir_fd=place.folder)
    _sync_folder(place.folder)


def _sync_folder(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; the change succeeded all the same.
        if error.errno not in (EINVAL, ENOTSUP):
            raise


def _through_a_link(root: str, key: str) -> TieredctlError:
    message = f"{root}/{key} is a link, or reached through one: nothing is changed or copied through links."
    return TieredctlError(ErrorCode.PATH_FORBIDDEN, message, hint="Name the folder that the link leads to in --store.")


UNFINISHED_FOLDER = RESERVED_FOLDER + "unfinished/"
"""The folder of files that are still being written."""
_ABANDONED_SECONDS = 24 * 60 * 60
_cleared: set[tuple[int, str]] = set()
"""The stores that this process has cleared."""


def remove_leftovers(root: str, now: float) -> None:
    """Removes unfinished files that nothing wrote to for a day, once per process and store: it walks the whole store.
    Follows no link.

    `now` is the file system's own time, in seconds: that of a file just written. What cannot be removed stays.
    """
    if (os.getpid(), root) in _cleared:
        return
    _cleared.add((os.getpid(), root))
    for folder, _, names, descriptor in os.fwalk(root, follow_symlinks=False):
        is_apart = os.path.relpath(folder, root) + "/" == UNFINISHED_FOLDER
        for name in names:
            if is_apart or name.startswith(UNFINISHED):
                with suppress(OSError):
                    if now - os.lstat(name, dir_fd=descriptor).st_mtime > _ABANDONED_SECONDS:
                        os.unlink(name, dir_fd=descriptor)

"""Where a key's file is below a store's folder, and which object a file is."""

from __future__ import annotations

import os
from errno import ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR
from stat import S_ISREG

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import StoredObject

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

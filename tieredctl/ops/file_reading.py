"""Regular files of this machine, read in pieces; what keeps one from being read is an error that names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.quantities import size_text

LARGEST_BATCH_FILE = (1 << 31) - 1
"""The largest log or KRaft snapshot: Kafka's positions in them are 32 bits wide (FileRecords)."""
_CHUNK_BYTES = 1 << 22


def regular_size(path: Path) -> int:
    """The size of a regular file: reading a pipe might never end, and a device has no size."""
    status = path.stat()
    if not S_ISREG(status.st_mode) and not S_ISDIR(status.st_mode):
        raise TieredctlError(ErrorCode.USAGE, f"{path} is not a regular file", hint="Copy its content to a file first.")
    return status.st_size


def demand_size(path: Path | str, size: int, largest: int, hint: str) -> None:
    """Raises TieredctlError where a file is larger than those of its kind are."""
    if size > largest:
        message = f"{path} has {size_text(size)}, far more than a file of its kind"
        raise TieredctlError(ErrorCode.UNREADABLE, message, hint=hint)


def file_chunks(path: Path, size: int) -> Iterator[bytes]:
    """The first `size` bytes in pieces, or fewer if the file has shrunk."""
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Raises TieredctlError for what the system says of a file."""
    try:
        yield
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"{path} does not exist") from None
    except IsADirectoryError:
        raise TieredctlError(ErrorCode.USAGE, f"{path} is a folder", hint="Give the files in it.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{path} may not be read by this user") from None
    except OSError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {os.strerror(error.errno or 0)}") from None

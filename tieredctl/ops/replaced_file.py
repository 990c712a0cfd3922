"""A file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tieredctl.errors import TieredctlError


@contextmanager
def replaced_file(path: Path, *, force: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes a path's place once all is written and on disk; of a failure nothing is left.

    A link stays, and the file that it leads to is replaced. Raises TieredctlError `unwritable` where the path cannot
    be written or is anything but a file, and where it is there already but for `force`.
    """
    if not path.name:
        raise TieredctlError("unwritable", f"'{path}' names no file.")
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        _demand_replaceable(path, force=force)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _demand_replaceable(path, force=force)
        temporary.replace(target)
    except OSError as error:
        if error.filename is not None and Path(error.filename).parent != target.parent:
            raise  # it is what was to be written that cannot be read
        raise TieredctlError("unwritable", f"{path} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def _demand_replaceable(path: Path, *, force: bool) -> None:
    if not path.exists():
        return
    if not path.is_file():
        # To replace a device or a pipe would take it from everybody else.
        raise TieredctlError("unwritable", f"{path} is there already, and is no file.", hint="Name a file.")
    if not force:
        raise TieredctlError("unwritable", f"{path} is there already.", hint="Give --force to replace it.")

"""What becomes of coordinators' states that a disk does not take."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError


@contextmanager
def written_states(folder: Path, whose: str) -> Iterator[None]:
    """Turns what SQLite says of a disk that is full, or may not be written, into TieredctlError `unwritable`; `folder`
    is where the user wants them."""
    try:
        yield
    except sqlite3.OperationalError as fault:
        raise unwritable(folder, whose, fault) from None


def unwritable(folder: Path, whose: str, fault: Exception) -> TieredctlError:
    """The error for any fault of the disk where the states were to be written."""
    message = f"The states of {whose} cannot be written to {folder}: {fault}."
    return TieredctlError(ErrorCode.UNWRITABLE, message)

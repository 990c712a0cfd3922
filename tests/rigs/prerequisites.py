"""What a rig is made of: found on this machine, or made once and kept under `build/`."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path

BUILD_FOLDER = Path(__file__).resolve().parents[2] / "build"


class RigMissing(Exception):
    """A prerequisite of a rig is not on this machine; the text is one sentence that names it."""


def build_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Lets `fill` write into a new folder, which is renamed to `folder` when it is whole.

    Of two processes that want the same folder, the second waits: together they would take longer than one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
            unfinished = Path(scratch, "unfinished")
            unfinished.mkdir()
            fill(unfinished)
            unfinished.rename(folder)

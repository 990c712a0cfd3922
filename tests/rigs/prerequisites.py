"""What a rig is made of: found on this machine, or made once and kept under `build/`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

BUILD_FOLDER = Path(__file__).resolve().parents[2] / "build"


class RigMissing(Exception):
    """A prerequisite of a rig is not on this machine; the text is one sentence that names it."""


def build_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write into a new folder, then rename it to `folder`; a twin that was faster wins."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        unfinished = Path(scratch, "unfinished")
        unfinished.mkdir()
        fill(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise

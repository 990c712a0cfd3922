"""Unfinished files that killed writers left below a store's folder."""

from __future__ import annotations

import os
from contextlib import suppress

from tieredctl.ports.object_store import RESERVED_FOLDER, UNFINISHED

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

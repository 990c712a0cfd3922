"""The files in a stopped node's `__cluster_metadata-0`: seen, and removed one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from tieredctl.model.local_file import SeenFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """An open folder: whatever becomes of its path, this is the same one."""

    path: Path
    descriptor: int

    def files(self) -> dict[str, SeenFile]:
        """The regular files, by name. Raises OSError."""
        seen = (self.seen(name) for name in os.listdir(self.descriptor))
        return {file.name: file for file in seen if file is not None}

    def seen(self, name: str) -> SeenFile | None:
        """A regular file as it is now; None where there is none. Raises OSError."""
        try:
            status = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not S_ISREG(status.st_mode):
            return None
        return SeenFile(name, status.st_size, status.st_mtime_ns, status.st_ino)

    def remove(self, name: str) -> None:
        """Removes a file; that is on disk when this returns. Raises OSError."""
        os.unlink(name, dir_fd=self.descriptor)
        os.fsync(self.descriptor)


@contextmanager
def opened_node_folder(path: Path) -> Iterator[NodeFolder]:
    """Raises OSError."""
    descriptor = os.open(path, _FOLDER)
    try:
        yield NodeFolder(path, descriptor)
    finally:
        os.close(descriptor)

"""Files of a stopped node: seen, read, and removed or replaced one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EEXIST, EFBIG, EINVAL
from pathlib import Path
from stat import S_IMODE, S_ISREG

from tieredctl.model.local_file import SeenFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """An open folder: whatever becomes of its path, this is the same one. Links in it are not followed."""

    path: Path
    descriptor: int

    def files(self) -> dict[str, SeenFile]:
        """The regular files, by name. Raises OSError."""
        seen = (self.seen(name) for name in os.listdir(self.descriptor))
        return {file.name: file for file in seen if file is not None}

    def seen(self, name: str) -> SeenFile | None:
        """A regular file as it is now; None where there is none. Raises OSError."""
        try:
            status = self._status(name)
        except FileNotFoundError:
            return None
        if not S_ISREG(status.st_mode):
            return None
        return SeenFile(name, status.st_size, status.st_mtime_ns, status.st_ino)

    @contextmanager
    def inner(self, name: str) -> Iterator[NodeFolder]:
        """A folder in this one. Raises OSError."""
        descriptor = os.open(name, _FOLDER, dir_fd=self.descriptor)
        try:
            yield NodeFolder(self.path / name, descriptor)
        finally:
            os.close(descriptor)

    def read(self, name: str, largest: int) -> bytes:
        """All bytes of a regular file. Raises OSError, also for one that has more than `largest`, and for what is not
        a regular file."""
        descriptor = os.open(name, _READ, dir_fd=self.descriptor)
        with open(descriptor, "rb") as file:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(EINVAL, "it is not a regular file", name)
            data = file.read(largest + 1)
        if len(data) > largest:
            raise OSError(EFBIG, os.strerror(EFBIG), name)
        return data

    def remove(self, name: str) -> None:
        """Removes a file; that is on disk when this returns. Raises OSError."""
        os.unlink(name, dir_fd=self.descriptor)
        os.fsync(self.descriptor)

    def replace(self, name: str, data: bytes, kept_as: str) -> None:
        """Puts `data` in the place of a file, as Kafka does (CheckpointFile.write): whole or not at all, and on disk
        when this returns. The new file has the owner and the mode of the old one, which stays as `kept_as`.

        Raises OSError, also where `kept_as` is there and is another file, and where the owner cannot be kept.
        """
        temporary = f"{name}.tmp"  # Kafka's own name, which a node that starts removes
        old = self._status(name)
        self._keep(name, kept_as, old)
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=self.descriptor)
        descriptor = os.open(temporary, _NEW, _PRIVATE, dir_fd=self.descriptor)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                new = os.fstat(descriptor)
                if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
                os.fchmod(descriptor, S_IMODE(old.st_mode))
                os.fsync(descriptor)
            os.replace(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.descriptor)
            raise
        os.fsync(self.descriptor)

    def _keep(self, name: str, kept_as: str, status: os.stat_result) -> None:
        try:
            os.link(name, kept_as, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor, follow_symlinks=False)
        except FileExistsError:
            # Of a run that was killed here.
            if self.read(kept_as, status.st_size) != self.read(name, status.st_size):
                raise OSError(EEXIST, os.strerror(EEXIST), kept_as) from None
        os.fsync(self.descriptor)

    def _status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)


@contextmanager
def opened_node_folder(path: Path) -> Iterator[NodeFolder]:
    """Raises OSError."""
    descriptor = os.open(path, _FOLDER)
    try:
        yield NodeFolder(path, descriptor)
    finally:
        os.close(descriptor)

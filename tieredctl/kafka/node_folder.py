"""Files of a stopped node: seen, read, and removed or replaced one by one.

Proof that no node uses a log directory, and that none begins to meanwhile.

A running node holds a lock on `.lock` in each of its log directories, its metadata log directory included
(LogManager.lockLogDirs, KafkaRaftManager.lockDataDir). A broker that stopped cleanly leaves `.kafka_cleanshutdown`,
which it deletes when it starts.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EEXIST, EFBIG, EINVAL
from pathlib import Path
from stat import S_IMODE, S_ISREG

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tieredctl.formats.file_names import LOCK_FILE
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
        regular_files = (self.seen(name) for name in os.listdir(self.descriptor))
        return {file.name: file for file in regular_files if file is not None}

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


_LOCK = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class StoppedNode:
    """A log directory whose lock is held here, or that has none."""

    log_dir: Path
    lock: os.stat_result | None
    """The status of the lock file that is held; None where there is none, as in a copy."""

    def demand_stopped(self) -> None:
        """Raises TieredctlError `node-running` if a node may have started since."""
        if self.lock is None:
            if not _exists(self.log_dir / LOCK_FILE) and _exists(self.log_dir / CLEAN_SHUTDOWN_FILE):
                return
        elif _same(self.log_dir / LOCK_FILE, self.lock):
            return
        raise TieredctlError(ErrorCode.NODE_RUNNING, f"A node may have started on {self.log_dir}.")


@contextmanager
def stopped_node(log_dir: Path) -> Iterator[StoppedNode]:
    """Holds the lock, so that no node starts. Raises TieredctlError: `node-running` if one holds it, `node-unclear` if
    nothing proves that none does, and where the lock cannot be taken for another reason."""
    try:
        descriptor = os.open(log_dir / LOCK_FILE, _LOCK)
    except FileNotFoundError:
        if not _exists(log_dir / CLEAN_SHUTDOWN_FILE):
            message = f"It is not certain that no node uses {log_dir}: neither {LOCK_FILE} nor {CLEAN_SHUTDOWN_FILE} is"
            raise TieredctlError(ErrorCode.NODE_UNCLEAR, f"{message} there.") from None
        # Making the file would leave it to the wrong owner, whose node could then not start.
        yield StoppedNode(log_dir, None)
        return
    except OSError as error:
        message = f"{log_dir / LOCK_FILE} cannot be locked: {error.strerror}."
        raise TieredctlError(ErrorCode.NODE_UNCLEAR, message) from None
    try:
        _lock(descriptor, log_dir)
        node = StoppedNode(log_dir, os.fstat(descriptor))
        node.demand_stopped()
        yield node
    finally:
        os.close(descriptor)  # which frees the lock


def _lock(descriptor: int, log_dir: Path) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # by POSIX, either
        raise TieredctlError(ErrorCode.NODE_RUNNING, f"A node is running on {log_dir}: it holds {LOCK_FILE}.") from None
    except OSError as error:
        message = f"{log_dir / LOCK_FILE} cannot be locked: {error.strerror}."
        raise TieredctlError(ErrorCode.NODE_UNCLEAR, message) from None


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _same(path: Path, status: os.stat_result) -> bool:
    """Whether a path still names the file of which this is the status."""
    try:
        return os.path.samestat(path.lstat(), status)
    except OSError:
        return False

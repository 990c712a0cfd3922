"""Proof that no node uses a log directory, and that none begins to meanwhile.

A running node holds a lock on `.lock` in each of its log directories, its metadata log directory included
(LogManager.lockLogDirs, KafkaRaftManager.lockDataDir). A broker that stopped cleanly leaves `.kafka_cleanshutdown`,
which it deletes when it starts.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tieredctl.formats.file_names import LOCK_FILE

_LOCK = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class StoppedNode:
    """A log directory whose lock is held here, or that has none."""

    log_dir: Path
    lock: os.stat_result | None
    """Of the lock file that is held; None where there is none, as in a copy."""

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

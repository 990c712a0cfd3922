"""A file that exists whole or not at all, and that nobody else can tamper with."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, ELOOP, ENOTDIR
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE, S_ISVTX, S_IWOTH
from typing import Any, BinaryIO

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.interruption import critical_section, mark_complete

PRIVATE, READABLE_BY_ALL = 0o600, 0o644
_ADDED_TO = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
_MODE_BITS = 0o777


class CountedBytes(io.FileIO):
    """What would be a file: whatever is written to it is counted, and kept nowhere."""

    def __init__(self) -> None:
        super().__init__(os.devnull, "wb")
        self.size = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.size += size
        return size

    def tell(self) -> int:
        return self.size

    def truncate(self, size: int | None = None) -> int:
        self.size = 0 if size is None else size
        return self.size


@contextmanager
def replaced_file(
    path: Path,
    *,
    force: bool,
    own: bytes | None = None,
    mode: int = PRIVATE,
    dry_run: bool = False,
    is_last: bool = False,
) -> Iterator[BinaryIO]:
    """A new file that takes a path's place once everything is written and on disk; a failure leaves nothing.

    It gets the mode and, where permitted, the owner of the file that it replaces, otherwise what the umask leaves of
    `mode`. A link stays, and its target is replaced. Raises TieredctlError `unwritable` if the path cannot be written
    or is not a regular file, if it exists already and `force` is off, and for a link that others could have placed.
    Without `force`, an empty file and one that begins with `own` are replaced all the same: those are what tieredctl
    itself left there by an earlier run. By its name, nothing is known to be.
    A dry run raises the same, and gives `CountedBytes`. `is_last` is for the file that a command is there to write:
    once it is in its place, an interruption ends nothing.
    """
    if not path.name:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"'{path}' does not name a file.")
    temporary = f".tieredctl-{token_hex(8)}.tmp"
    own_names: tuple[str | None, ...] = (None, temporary)
    try:
        target = _led_to(path)
        own_names = (None, temporary, str(target), str(target.parent))
        _demand_replaceable(path, target, force=force, own=own)
        with _opened_folder(target.parent) as folder:
            if dry_run:
                demand_writable(target.parent)
                with CountedBytes() as counted:
                    yield counted
                return
            try:
                replaced = _status(target)
                allowed = mode if replaced is None else mode & replaced.st_mode
                descriptor = os.open(temporary, _NEW_FILE, allowed, dir_fd=folder)
                with open(target.with_name(temporary), "wb", opener=lambda *_: descriptor) as file:
                    yield file
                    file.flush()
                    if replaced is not None:
                        _take_over(file.fileno(), replaced)
                    os.fsync(file.fileno())
                with critical_section():
                    _demand_replaceable(path, target, force=force, own=own)
                    os.replace(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
                    if is_last:
                        mark_complete()
            finally:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
    except OSError as error:
        if error.filename not in own_names:
            raise  # reading the content failed, not writing it
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} cannot be written: {error.strerror}.") from None


class _OnlyTried(Exception):
    pass


def demand_replaceable(path: Path, *, force: bool, own: bytes | None = None, dry_run: bool = False) -> None:
    """Raises TieredctlError `unwritable` now, before long work, where `replaced_file` would; leaves nothing."""
    with suppress(_OnlyTried), replaced_file(path, force=force, own=own, dry_run=dry_run):
        raise _OnlyTried


@contextmanager
def file_added_to(path: Path, own: bytes = b"") -> Iterator[BinaryIO]:
    """A file to append to in place, and to read; created, private, if it does not exist.

    A link is followed as in `replaced_file`. Raises TieredctlError `unwritable` for a link that others could have
    placed, for anything but a regular file, and for one that does not begin with `own`, however far it was written
    (without `own`, whoever asks has looked); OSError if the path cannot be written.
    """
    target = _led_to(path)
    _demand_replaceable(path, target, force=False, own=own)
    with open(target, "ab+", opener=lambda name, _: os.open(name, _ADDED_TO, PRIVATE)) as file:
        yield file


def demand_writable(folder: Path) -> None:
    """Raises OSError for what is not a folder, or not one into which this user may write."""
    if not folder.is_dir():
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), str(folder))


@contextmanager
def _opened_folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _status(target: Path) -> os.stat_result | None:
    try:
        return target.lstat()
    except FileNotFoundError:
        return None


def _take_over(descriptor: int, replaced: os.stat_result) -> None:
    """Gives an open file the mode and the owner of the file whose place it takes."""
    with suppress(PermissionError):
        os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
    os.fchmod(descriptor, replaced.st_mode & _MODE_BITS)


def _led_to(path: Path) -> Path:
    """What a path names, with links resolved. Raises TieredctlError for a link that is not to be trusted."""
    at = Path(path.anchor or "/")
    left = list(reversed(path.absolute().parts[1:]))
    followed = 0
    while left:
        part = left.pop()
        step = at.parent if part == ".." else at / part
        try:
            leads_to = step.readlink()
        except OSError:  # not a link, or nothing there yet
            at = step
            continue
        followed += 1
        if followed > _MOST_LINKS:
            raise OSError(ELOOP, os.strerror(ELOOP))
        _demand_trustworthy(path, step)
        at = Path(leads_to.anchor) if leads_to.is_absolute() else at
        left += reversed([part for part in leads_to.parts if part != leads_to.anchor])
    return at


def _demand_trustworthy(path: Path, link: Path) -> None:
    """In a world-writable folder, anybody may have placed a link; with the sticky bit, only its owner."""
    folder, owner = link.parent.stat(), link.lstat().st_uid
    mode = S_IMODE(folder.st_mode)
    if not mode & S_IWOTH or (mode & S_ISVTX and owner in (os.geteuid(), folder.st_uid)):
        return
    message = f"{path} leads through {link}, a symbolic link in a world-writable folder."
    raise TieredctlError(ErrorCode.UNWRITABLE, message, hint="Name the link's target, or use another folder.")


def _demand_replaceable(path: Path, target: Path, *, force: bool, own: bytes | None) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_file() or target.is_symlink():
        # Replacing a device or a pipe would take it from everybody else.
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} exists and is not a regular file.", hint="Name a file.")
    if force:
        return
    if own is None:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{path} already exists.", hint="Give --force to replace it.")
    with target.open("rb") as file:
        beginning = file.read(len(own))
    if not own.startswith(beginning):
        message = f"{path} exists, and tieredctl did not write it."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint="Name another file, or remove this one.")

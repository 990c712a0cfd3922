"""The key that signs plans: next to the configuration file, unless `$TIEREDCTL_PLAN_KEY_FILE` names another.

Whoever has it can have a plan applied without a review of every line, so nobody else may read it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tieredctl.config.file import configuration_folder
from tieredctl.errors import ErrorCode, TieredctlError

VARIABLE = "TIEREDCTL_PLAN_KEY_FILE"
_KEY_BYTES = 32
_FILE_NAME = "plan.key"


def signing_key() -> bytes:
    """The key, which is made on first use; a key file that was named must exist.

    Raises TieredctlError `plan-key` where it cannot be made or read, or others may read it.
    """
    path = _path()
    key = _read(path)
    if key is None and not os.environ.get(VARIABLE):
        _make(path)
        key = _read(path)
    if key is None:
        raise _unusable(path, "there is no such file")
    return key


def key_for_plan(*, dry_run: bool) -> bytes | None:
    """The key that a plan is signed with; a dry run makes none. Raises TieredctlError as `signing_key` does."""
    return known_key() if dry_run else signing_key()


def known_key() -> bytes | None:
    """The key; None where none was made yet. Raises TieredctlError as `signing_key` does."""
    path = _path()
    key = _read(path)
    if key is None and os.environ.get(VARIABLE):
        raise _unusable(path, "there is no such file")
    return key


def usable_key() -> bytes | None:
    """The key; None also where it cannot be used: for callers that can do without it."""
    try:
        return known_key()
    except TieredctlError:
        return None


def key_for_seals() -> bytes | None:
    """The key that seals notes about copies, which is made on first use; None where it cannot be used."""
    try:
        return signing_key()
    except TieredctlError:
        return None


def _path() -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named) if named else configuration_folder() / _FILE_NAME


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = "it is a link" if os.path.islink(path) else f"it cannot be read: {error.strerror}"
        raise _unusable(path, reason) from None
    try:
        _demand_private(path, os.fstat(descriptor))  # first: Python opens no folder as a file
        text = os.read(descriptor, 2 * _KEY_BYTES + 2)
    finally:
        os.close(descriptor)
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise _unusable(path, f"it does not hold {_KEY_BYTES} bytes in hexadecimal digits")
    return key


def _demand_private(path: Path, status: os.stat_result) -> None:
    """A file of root's may be readable by our group, as mounted secrets are."""
    if not stat.S_ISREG(status.st_mode):
        raise _unusable(path, "it is not a file")
    if status.st_uid not in (0, os.geteuid()):
        raise _unusable(path, "it belongs to another user")
    is_mounted = status.st_uid == 0 and os.geteuid() != 0
    if status.st_mode & (0o027 if is_mounted else 0o077):
        raise _unusable(path, "others may read or write it", hint=f"Run `chmod 600 {path}`.")


def _make(path: Path) -> None:
    """Makes it whole or not at all; another run may have made it meanwhile."""
    import secrets  # once in the life of a key

    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_hex(_KEY_BYTES).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        finally:
            temporary.unlink()
    except FileExistsError:
        return
    except OSError as error:
        raise _unusable(path, f"it cannot be made: {error.strerror}") from None


def _unusable(path: Path, reason: str, *, hint: str | None = None) -> TieredctlError:
    return TieredctlError(ErrorCode.PLAN_KEY, f"The key for plans, {path}, cannot be used: {reason}.", hint=hint)

"""Who may read what is put into a folder, and take it away.

Brokers do both, perhaps as another user: a file keeps the mode and, where permitted, the owner of the one that it
replaces. What is new has the owner of its folder, and who may write there, as brokers do, may read a new file and write
into a new folder, unless all may, as into /tmp. Else, and in the reserved folder, the umask decides.
"""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_IMODE, S_ISVTX

_ALL_MAY_WRITE = 0o222


def give(descriptor: int, like: os.stat_result) -> None:
    """Gives an open file another one's mode and owner."""
    _give(descriptor, like, S_IMODE(like.st_mode))


def give_as_in(folder: int, descriptor: int, *, is_folder: bool) -> None:
    """Gives an open file or folder that is new in an open folder that one's owner, and those a share who may write
    there."""
    around = os.fstat(folder)
    may_write = 0 if around.st_mode & S_ISVTX else around.st_mode & _ALL_MAY_WRITE
    may_read, may_enter = may_write << 1, may_write >> 1
    rights = may_read | may_write | may_enter if is_folder else may_read
    _give(descriptor, around, S_IMODE(os.fstat(descriptor).st_mode) | rights)


def _give(descriptor: int, like: os.stat_result, mode: int) -> None:
    """Changes nothing that is so already, as mounted buckets refuse changes, and no owner where that is forbidden."""
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    if S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)

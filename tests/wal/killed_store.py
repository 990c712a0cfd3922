"""A process that is killed before one of its writes to a store of files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tieredctl.storage.file import FileStore


class Killed(BaseException):
    """Nothing of the process goes on."""


def killed_after(patched: pytest.MonkeyPatch, writes: int | None) -> list[str]:
    """Lets so many writes through, and none after them; the names of those that were made. None lets all through."""
    written = list[str]()
    for name in ("write", "put_if_absent", "replace", "copy", "delete"):
        real = getattr(FileStore, name)

        def stopping(self: FileStore, *given: object, _name: str = name, _real: Callable[..., object] = real) -> object:
            if writes is not None and len(written) >= writes:
                raise Killed
            written.append(_name)
            return _real(self, *given)

        patched.setattr(FileStore, name, stopping)
    return written

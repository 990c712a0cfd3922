"""What a power cut would leave: the bytes and the names that were put on the disk."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISDIR

import pytest


class SyncedDisk:
    """Notes what each fsync of this process makes durable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sizes: dict[int, int] = {}
        self._names: dict[int, set[str]] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._note)

    def has(self, path: Path) -> bool:
        """Whether a file has all its bytes there, or a folder is there, under its name."""
        found = path.stat()
        whole = S_ISDIR(found.st_mode) or self._sizes.get(found.st_ino) == found.st_size
        return whole and path.name in self._names.get(path.parent.stat().st_ino, ())

    def _note(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if S_ISDIR(found.st_mode):
            self._names[found.st_ino] = set(os.listdir(descriptor))
        else:
            self._sizes[found.st_ino] = found.st_size
        self._fsync(descriptor)

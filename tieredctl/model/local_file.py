"""A file as it was seen."""

from __future__ import annotations

from typing import NamedTuple


class SeenFile(NamedTuple):
    """What tells a file from one that took its name since."""

    name: str
    size: int
    """In bytes."""
    modified_ns: int
    inode: int

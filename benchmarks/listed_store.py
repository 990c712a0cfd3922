"""tieredctl with one more kind of store, `listed:FILE`: `python -m benchmarks.listed_store WORD …`, words as its own.

The file lists the store's objects as an inventory does: a key per line, in the order of their bytes. They can be
listed, and have no bytes. `verify` takes no inventory, and millions of files would measure their file system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint
from io import TextIOWrapper
from itertools import dropwhile, repeat, takewhile
from operator import itemgetter
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

from tieredctl import plugins
from tieredctl.cli.main import main
from tieredctl.ports.object_store import Capability, StoredObject
from tieredctl.ports.store_kinds import STORES, Address, StoreKind
from tieredctl.storage.memory import MemoryStore

SCHEME = "listed"
_READ_AT_ONCE = 1 << 20


class ListedStore(MemoryStore):
    """Objects in name only. Each has 1,000 bytes that can't be read."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.url = f"{SCHEME}:{file}"
        self._file = Path(file)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        with self._file.open("rb", buffering=_READ_AT_ONCE) as lines:
            _find(max(prefix, start_after).encode(), lines)
            keys = map(_without_end, TextIOWrapper(lines, "utf-8", newline="\n"))
            wanted = dropwhile(
                start_after.__eq__, takewhile(lambda key: key.startswith(prefix), keys) if prefix else keys
            )
            # As fast as can be: what a store costs is not what is measured.
            yield from map(_listed, zip(wanted, repeat(1_000), repeat(0), repeat("1"), repeat(None)))

    def head(self, key: str) -> StoredObject | None:
        return next((stored for stored in self.list(key) if stored.key == key), None)


_without_end = itemgetter(slice(None, -1))
_listed: Callable[[tuple[object, ...]], StoredObject] = partial(tuple.__new__, StoredObject)


def _find(key: bytes, lines: BinaryIO) -> None:
    """Goes to the first line that does not come before the key."""
    low, high = 0, lines.seek(0, SEEK_END)
    while low < high:
        middle = (low + high) // 2
        _go_to_line(lines, middle)
        line = lines.readline()
        if line and line[:-1] < key:
            low = middle + 1
        else:
            high = middle
    _go_to_line(lines, low)


def _go_to_line(lines: BinaryIO, place: int) -> None:
    """Goes to the first line that begins at `place` or after it."""
    lines.seek(max(place - 1, 0))
    if place:
        lines.readline()


def _open(file: str, _options: Mapping[str, str], _relied_on: frozenset[Capability]) -> Any:
    return ListedStore(file)


LISTED = StoreKind(SCHEME, f"{SCHEME}:FILE", Address.FOLDER, _open, frozenset())


def _install() -> None:
    """As a package with this entry point would be."""
    installed, own = plugins._installed, EntryPoint(SCHEME, "benchmarks.listed_store:LISTED", STORES.group)
    with_own = cache(lambda group, path: (*installed(group, path), *([own] if group == own.group else ())))
    plugins._installed = with_own


if __name__ == "__main__":
    _install()
    main()

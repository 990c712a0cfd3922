"""`--store URL` and its `--store-option`s, made an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from tieredctl.errors import TieredctlError
from tieredctl.storage.protocol import ObjectStore

Opener = Callable[[str, Mapping[str, str]], ObjectStore]
"""(what follows the scheme and its colon, options) -> the store."""


def open_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store that a URL names. Raises TieredctlError for a URL or an option that no store understands, and for a
    store that is not there."""
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in _OPENERS:
        known = ", ".join(form for form, _ in _OPENERS.values())
        raise TieredctlError("no-store", f"{url!r} names no store that tieredctl can open; it can open {known}.")
    _, opener = _OPENERS[scheme]
    return opener(rest, options)


def _open_folder(folder: str, options: Mapping[str, str]) -> ObjectStore:
    from tieredctl.storage.file import FileStore

    _demand_no_options("file", options)
    if not folder:
        raise TieredctlError("no-store", "'file:' names no folder.")
    if folder.startswith("//") and not folder.startswith("///"):
        message = f"'file:{folder}' names a host: a folder of another host must be mounted here."
        raise TieredctlError("no-store", message, hint="Write it as file:DIR.")
    return FileStore(os.path.abspath(folder))


def _open_memory(rest: str, options: Mapping[str, str]) -> ObjectStore:
    from tieredctl.storage.memory import MemoryStore

    _demand_no_options("memory", options)
    if rest:
        raise TieredctlError("no-store", f"A store in memory has no name, but 'memory:{rest}' gives it one.")
    return MemoryStore()


def _demand_no_options(scheme: str, options: Mapping[str, str]) -> None:
    for name in options:
        raise TieredctlError("usage", f"A {scheme}: store has no option {name!r}.")


_OPENERS: dict[str, tuple[str, Opener]] = {
    "file": ("file:DIR", _open_folder),
    "memory": ("memory:", _open_memory),
}
"""By scheme: how to write it, and what opens it."""

"""Which places a command line is about, for the cache of completions: by its options, the environment, a context.

The same function answers for a command that ran and for one that is being typed, so both mean the same file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tieredctl.cli.completion.half_typed import HalfTyped

if TYPE_CHECKING:
    from tieredctl.config.contexts import Context

CONTEXT, LOG_DIR = "--context", "--log-dir"
_METADATA = ("--bootstrap-server", LOG_DIR, "--export", "--metadata-source")
_STORE = "--store"
_PATHS = (LOG_DIR, "--export")
_VARIABLES = {
    "--bootstrap-server": "TIEREDCTL_BOOTSTRAP_SERVER",
    LOG_DIR: "TIEREDCTL_LOG_DIR",
    "--export": "TIEREDCTL_EXPORT",
    "--metadata-source": "TIEREDCTL_METADATA_SOURCE",
    _STORE: "TIEREDCTL_STORE",
}
_FILE_STORE = "file:"


def places_of(typed: HalfTyped, environ: Mapping[str, str]) -> list[str]:
    """The place of the metadata, and the store, if they are known: texts that mean this place alone."""
    given = {option: typed.values(option) for option in (*_METADATA, _STORE)}
    on_line = any(given[option] for option in _METADATA)
    for option in _METADATA if not on_line else ():
        given[option] = _of_environment(option, environ)
    given[_STORE] = given[_STORE] or _of_environment(_STORE, environ)
    named = typed.values(CONTEXT)
    is_elsewhere = any(given[option] for option in _METADATA) or given[_STORE]
    context = None if is_elsewhere and not named else _context(named[-1] if named else None)
    if context is not None and not any(given[option] for option in _METADATA):
        given["--bootstrap-server"] = [context.bootstrap_server or ""]
    if context is not None and not given[_STORE]:
        given[_STORE] = [context.store or ""]
    metadata = next((option for option in _METADATA if any(given[option])), None)
    found = [] if metadata is None else [_place(metadata, given[metadata])]
    return [*found, _place(_STORE, given[_STORE])] if any(given[_STORE]) else found


def log_directories(typed: HalfTyped, environ: Mapping[str, str]) -> list[str]:
    """The log directories that are named."""
    if any(typed.values(option) for option in _METADATA):
        return typed.values(LOG_DIR)
    return _of_environment(LOG_DIR, environ)


def _of_environment(option: str, environ: Mapping[str, str]) -> list[str]:
    value = environ.get(_VARIABLES[option], "")
    if option == LOG_DIR:
        return [folder for folder in value.split(os.pathsep) if folder]
    return [value] if value else []


def _place(option: str, values: list[str]) -> str:
    if option in _PATHS:
        values = sorted(map(_path, values))
    elif option == _STORE and values[-1].startswith(_FILE_STORE):
        values = [_FILE_STORE + _path(values[-1].removeprefix(_FILE_STORE))]
    else:
        values = values[-1:]
    return "\0".join([option, *values])


def _path(text: str) -> str:
    return os.path.abspath(os.path.expanduser(text))


def _context(name: str | None) -> Context | None:
    """The one that is named, or is current; None where the file cannot be used."""
    from tieredctl.config.contexts import chosen_context
    from tieredctl.errors import TieredctlError

    try:
        chosen = chosen_context(name)
    except TieredctlError:
        return None
    return None if chosen is None else chosen.context

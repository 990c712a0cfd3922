"""A command line that is still being typed, by the table of commands: nothing of it is run, and any text is taken.

Which places a command line is about, for the cache of completions: by its options, the environment, a context.

The same function answers for a command that ran and for one that is being typed, so both mean the same file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.cli.completion.command_table import FLAG, Command, CommandTable, Parameter

if TYPE_CHECKING:
    from tieredctl.config.contexts import Context


class HalfTyped(NamedTuple):
    """What the words say so far."""

    command: Command
    options: Sequence[tuple[str, str]]
    """The options by their first name, each with its value; flags with an empty one."""
    arguments: Sequence[str]
    awaited: Parameter | None
    """The option whose value comes next."""
    only_arguments: bool
    """Whether -- was typed."""

    def values(self, name: str) -> list[str]:
        """What was given for an option."""
        return [value for option, value in self.options if option == name]


def half_typed(table: CommandTable, words: Sequence[str]) -> HalfTyped:
    """What these words say, without the program's name."""
    root = table.command(())
    command, named = root, list[str]()
    options: list[tuple[str, str]] = []
    arguments: list[str] = []
    awaited: Parameter | None = None
    only_arguments = False
    for word in words:
        if awaited is not None:
            options.append((awaited.names[0], word))
            awaited = None
        elif only_arguments or not word.startswith("-") or word == "-":
            if not arguments and not only_arguments and table.has([*named, word]):
                named.append(word)
                command = table.command(named)
            else:
                arguments.append(word)
        elif word == "--":
            only_arguments = True
        else:
            name, equals, value = word.partition("=")
            option = command.options.get(name) or root.options.get(name)
            if option is None:
                continue
            if option.kind != FLAG and not equals:
                awaited = option
            else:
                options.append((option.names[0], value))
    return HalfTyped(command, options, arguments, awaited, only_arguments)


def words_of(line: str) -> tuple[list[str], str]:
    """The words of a line as a POSIX shell takes them, without expanding anything; and how the last of them, which may
    be empty or have an open quote, is spelled."""
    words: list[str] = []
    word, start, quote = "", None, ""
    at = 0
    while at < len(line):
        character = line[at]
        following = line[at + 1 : at + 2]
        if quote == "'" or (quote and character != "\\"):
            if character == quote:
                quote = ""
            else:
                word += character
        elif character == "\\":
            start = at if start is None else start
            literal = quote == '"' and following not in ('"', "\\", "$", "`")
            word += f"\\{following}" if literal else following
            at += 1
        elif character in "'\"":
            start = at if start is None else start
            quote = character
        elif character.isspace():
            if start is not None:
                words.append(word)
            word, start = "", None
        else:
            start = at if start is None else start
            word += character
        at += 1
    words.append(word)
    return words, "" if start is None else line[start:]


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
    values = {option: typed.values(option) for option in (*_METADATA, _STORE)}
    on_line = any(values[option] for option in _METADATA)
    for option in _METADATA if not on_line else ():
        values[option] = _of_environment(option, environ)
    values[_STORE] = values[_STORE] or _of_environment(_STORE, environ)
    named = typed.values(CONTEXT)
    is_elsewhere = any(values[option] for option in _METADATA) or values[_STORE]
    context = None if is_elsewhere and not named else _context(named[-1] if named else None)
    if context is not None and not any(values[option] for option in _METADATA):
        values["--bootstrap-server"] = [context.bootstrap_server or ""]
    if context is not None and not values[_STORE]:
        values[_STORE] = [context.store or ""]
    metadata = next((option for option in _METADATA if any(values[option])), None)
    places = [] if metadata is None else [_place(metadata, values[metadata])]
    return [*places, _place(_STORE, values[_STORE])] if any(values[_STORE]) else places


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

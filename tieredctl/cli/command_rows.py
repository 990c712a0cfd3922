"""Writes the tables of all commands: `python -m tieredctl.cli.command_rows`, for `make completions`; with the names of
packages only theirs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from tieredctl.cli.command_tree import command_of
from tieredctl.cli.completion.command_table import ARGUMENT, COMMAND, FLAG, OPTION, TABLE_FILE, row
from tieredctl.model.command_packages import TABLE, CommandPackage, command_packages

_BY_METAVAR = {
    "FILE": "file",
    "PATH": "file",
    "PLAN": "file",
    "RECEIPTS": "file",
    "BEFORE": "file",
    "AFTER": "file",
    "KEY|FILE": "file",
    "FILE|store": "file",
    "OFFSET-FILE|TIME": "file",
    "DIR|FILE": "file",
    "DIR": "directory",
    "URL": "url",
    "PATH-OR-URL": "url",
    "TOPIC": "topic",
    "TOPIC-ID": "topic-id",
    "SEGMENT-ID": "segment-id",
    "CODE": "code",
    "CODE[:SUBJECT]": "finding-code",
    "NAME:LOCATION": "metadata-source",
    "STATE": "state",
    "PART": "part",
}
_CONTEXT, _LAYOUT = "--context", "--layout"


def tables() -> dict[Path, str]:
    """By file, the tables of tieredctl and of installed packages, by the commands themselves."""
    packages = command_packages()
    texts = {TABLE_FILE: "", **{_table_of(package): "" for package in packages}}
    for line in _rows(()):
        words = tuple(line.partition("\t")[0].split())
        owner = next((one for one in packages if one.has(words)), None)
        owner = owner or next((one for one in packages if words and words[0] in one.nouns()), None)
        texts[TABLE_FILE if owner is None else _table_of(owner)] += f"{line}\n"
    return texts


def _table_of(package: CommandPackage) -> Path:
    return Path(str(files(package.package).joinpath(TABLE)))


def _rows(words: tuple[str, ...]) -> Iterator[str]:
    command: Any = command_of(words)
    for word in words:
        command = command.commands[word]
    yield row(words, COMMAND, inspect.cleandoc(command.help or ""))
    for one in command.params:
        is_option = one.param_type_name == "option"
        names = " ".join([*one.opts, *one.secondary_opts]) if is_option else str(one.name)
        repeats = "repeats" if (one.multiple if is_option else one.nargs < 0) else "once"
        help_line = " ".join((getattr(one, "help", None) or "").split())
        yield row(words, OPTION if is_option else ARGUMENT, names, _kind(one, words), _metavar(one), repeats, help_line)
    for name in getattr(command, "commands", {}):
        yield from _rows((*words, name))


def _kind(parameter: Any, words: Sequence[str]) -> str:
    """What its values are."""
    if getattr(parameter, "is_flag", False):
        return FLAG
    choices = _choices(parameter)
    if choices:
        return f"choice:{','.join(choices)}"
    metavar = parameter.metavar or ""
    if metavar.startswith("["):
        metavar = metavar[1:-1]
    if _CONTEXT in parameter.opts or (words[:1] == ("context",) and metavar == "NAME" and words[1:] != ("add",)):
        return "context"
    if _LAYOUT in parameter.opts:
        return "layout"
    if metavar.startswith("TOPIC:PARTITION"):
        return "topic-partition"
    return _BY_METAVAR.get(metavar.removesuffix("...").split("[:PARTITION")[0], "text")


def _choices(parameter: Any) -> list[str]:
    """The choices of a type, or those that the help lists as a|b|c."""
    typed = getattr(parameter.type, "choices", None)
    if typed:
        return [str(getattr(one, "value", one)) for one in typed]
    listed = (parameter.metavar or "").split("|")
    return listed if len(listed) > 1 and all(one.islower() for one in listed) else []


def _metavar(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    return parameter.metavar or "|".join(_choices(parameter)) or str(parameter.name).upper()


def write_tables(packages: Sequence[str]) -> None:
    """Writes the tables of these packages, or of all. Raises SystemExit for one that is not installed."""
    texts = {file: text for file, text in tables().items() if not packages or file.parent.name in packages}
    missing = {*packages} - {file.parent.name for file in texts}
    if missing:
        sys.exit(f"No installed package with commands is called {', '.join(sorted(missing))}: install it first.")
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables(sys.argv[1:])

"""What a command line says, by the options that its command takes; nothing of it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TypedWords:
    """A command line: its command (`orphans scan`), options with their values, and arguments, as they were typed."""

    command: str
    options: tuple[tuple[str, str], ...]
    arguments: tuple[str, ...]


def options_of(words: Sequence[str]) -> frozenset[str]:
    """The options that the command of these words takes, and the names of its arguments."""
    command, _, _ = _command(words)
    return frozenset(
        name for one in command.params for name in (one.opts if one.param_type_name == "option" else [one.name])
    )


def typed(words: Sequence[str]) -> TypedWords:
    """What these words say. Flags are options without a value: an empty one."""
    command, names, left = _command(words)
    takes_value = {
        name: not one.is_flag for one in command.params if one.param_type_name == "option" for name in one.opts
    }
    options: list[tuple[str, str]] = []
    arguments: list[str] = []
    rest = iter(left)
    for word in rest:
        name, equals, value = word.partition("=")
        if word == "--":
            arguments += rest
        elif equals and takes_value.get(name):
            options.append((name, value))
        elif word in takes_value:
            options.append((word, next(rest, "") if takes_value[word] else ""))
        elif not word.startswith("-") or word == "-":
            arguments.append(word)
    return TypedWords(" ".join(names), tuple(options), tuple(arguments))


def _command(words: Sequence[str]) -> tuple[Any, list[str], list[str]]:
    """The command that the words name, its name, and the words after that."""
    from tieredctl.cli.main import command_of

    command: Any = command_of(words)
    names: list[str] = []
    for number, word in enumerate(words):
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            return command, names, list(words[number:])
        names.append(word)
        command = inner
    return command, names, []

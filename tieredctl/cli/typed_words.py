"""What a command line says, by the options that its command takes; nothing of it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tieredctl.cli.completion.command_table import FLAG, CommandTable


@dataclass(frozen=True, slots=True)
class TypedWords:
    """A command line: its command (`orphans scan`), options with their values, and arguments, as they were typed."""

    command: str
    options: tuple[tuple[str, str], ...]
    arguments: tuple[str, ...]


def named_command(words: Sequence[str]) -> tuple[str, ...]:
    """The first words, which name a command, or a noun that has commands."""
    end = 0
    while end < len(words) and tuple(words[: end + 1]) in _commands():
        end += 1
    return tuple(words[:end])


def options_of(words: Sequence[str]) -> frozenset[str]:
    """The options that the command of these words takes, and the names of its arguments."""
    return _options(named_command(words))


def typed(words: Sequence[str]) -> TypedWords:
    """What these words say. Flags are options without a value: an empty one."""
    names = named_command(words)
    takes_value = {name: one.kind != FLAG for name, one in _table().command(names).options.items()}
    options: list[tuple[str, str]] = []
    arguments: list[str] = []
    rest = iter(words[len(names) :])
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


@cache
def _options(names: tuple[str, ...]) -> frozenset[str]:
    command = _table().command(names)
    return frozenset(command.options).union(*(one.names for one in command.arguments))


@cache
def _commands() -> frozenset[tuple[str, ...]]:
    return frozenset(_table().commands())


@cache
def _table() -> CommandTable:
    return CommandTable.installed()

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
    return _named(words, _table_for(words))


def options_of(words: Sequence[str]) -> frozenset[str]:
    """The options that the command of these words takes, and the names of its arguments."""
    table = _table_for(words)
    return _options(_named(words, table), table)


def typed(words: Sequence[str]) -> TypedWords:
    """What these words say. Flags are options without a value: an empty one."""
    table = _table_for(words)
    names = _named(words, table)
    takes_value = {name: one.kind != FLAG for name, one in table.command(names).options.items()}
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


def _table_for(words: Sequence[str]) -> CommandTable:
    """The table that has the command of these words. Packages add commands to nouns alone: for a command of tieredctl's
    own none is looked for, which would take longer than all else about it."""
    own = _own_table()
    names = _named(words, own)
    return own if names and not own.verbs(names) else _whole_table()


def _named(words: Sequence[str], table: CommandTable) -> tuple[str, ...]:
    end = 0
    while end < len(words) and tuple(words[: end + 1]) in _commands(table):
        end += 1
    return tuple(words[:end])


@cache
def _options(names: tuple[str, ...], table: CommandTable) -> frozenset[str]:
    command = table.command(names)
    return frozenset(command.options).union(*(one.names for one in command.arguments))


@cache
def _commands(table: CommandTable) -> frozenset[tuple[str, ...]]:
    return frozenset(table.commands())


@cache
def _own_table() -> CommandTable:
    return CommandTable(CommandTable.own())


@cache
def _whole_table() -> CommandTable:
    return CommandTable.installed()

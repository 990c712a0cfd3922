"""All commands, as Typer knows them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from tieredctl.cli.command_tree import command_of, nouns


@cache
def commands() -> tuple[tuple[tuple[str, ...], Any], ...]:
    """Each command that runs, by its words."""
    return tuple(one for noun in nouns() for one in _below((noun,), _whole(noun)))


def verbs_of(words: tuple[str, ...]) -> list[str]:
    return list(getattr(command_at(words), "commands", {}))


def command_at(words: tuple[str, ...]) -> Any:
    command: Any = command_of(words)
    for word in words:
        command = command.commands[word]
    return command


def _whole(noun: str) -> Any:
    """All of a noun's verbs at once: Typer reads the options of those that are named, and verbs of other packages are
    looked for where the first is none of the noun's own."""
    root: Any = command_of((noun, "", *_names(command_at((noun,)))))
    return root.commands[noun]


def _names(command: Any) -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield name
        yield from _names(inner)


def _below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, inner in command.commands.items():
        yield from _below((*words, name), inner)

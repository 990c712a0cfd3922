"""All commands, as Typer knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tieredctl.cli.main import NOUNS, command_of


def commands(words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command that runs, by its words."""
    for name in NOUNS if not words else verbs_of(words):
        named = (*words, name)
        if verbs_of(named):
            yield from commands(named)
        else:
            yield named, command_at(named)


def verbs_of(words: tuple[str, ...]) -> list[str]:
    return list(getattr(command_at(words), "commands", {}))


def command_at(words: tuple[str, ...]) -> Any:
    command: Any = command_of(words)
    for word in words:
        command = command.commands[word]
    return command

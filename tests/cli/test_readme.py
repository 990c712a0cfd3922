"""The README names the commands that change something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from tests.cli.command_line import REPOSITORY
from tieredctl.cli.main import NOUNS, _app

README = REPOSITORY / "README.md"
CHANGING = {"--apply", "--no-lease", "--yes"}
"""What only commands take that change something."""


def test_the_commands_that_change_something_are_named() -> None:
    introduction = README.read_text().partition("## ")[0]
    named = set(re.findall(r"`((?:orphans|partition|topic|recover|snapshot|wal) [a-z]+)`", introduction))

    assert named == {words for words, options in commands() if options & CHANGING}


def commands() -> Iterator[tuple[str, set[str]]]:
    """Each noun and verb with the names of its options."""
    for noun in NOUNS:
        for verb in getattr(named_command([noun], noun), "commands", {}):
            command = named_command([noun, verb], noun).commands[verb]
            yield f"{noun} {verb}", {option for one in command.params for option in one.opts}


def named_command(words: list[str], noun: str) -> Any:
    """A noun, with the options of the verb that the words name: others are not loaded."""
    root: Any = typer.main.get_command(_app(words))
    return root.commands[noun]

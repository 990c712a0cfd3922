"""The page about safety lists the commands that change something."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.cli.command_line import REPOSITORY
from tests.cli.command_tree import command_at, verbs_of
from tieredctl.cli.command_tree import nouns

PAGE = REPOSITORY / "docs" / "safety.md"
CHANGING = {"--apply", "--no-lease", "--yes"}
"""What only commands take that change something."""


def test_the_commands_that_change_something_are_listed() -> None:
    named = set(re.findall(r"^\| `(\w+ [a-z-]+)(?: --apply)?` \|", PAGE.read_text(), re.MULTILINE))

    assert named == {words for words, options in commands() if options & CHANGING}


def commands() -> Iterator[tuple[str, set[str]]]:
    """Each noun and verb with the names of its options."""
    for noun in nouns():
        for verb in verbs_of((noun,)):
            command = command_at((noun, verb))
            yield f"{noun} {verb}", {option for one in command.params for option in one.opts}

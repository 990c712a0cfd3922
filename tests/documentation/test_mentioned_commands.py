"""What pages mention in passing, such as `orphans plan --to FILE`, exists: the command, and each of its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import REPOSITORY
from tests.documentation.pages import name_of, pages
from tieredctl.cli.command_tree import nouns
from website.hook import OUTSIDE
from website.reference import commands_of

EVERYWHERE = {"--help", "-h", "--context", "--debug", "--no-color", "-v"}
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])(?:--[a-z][a-z-]+|-[a-z])(?![\w-])")
TYPED = re.compile(r"^ *(?:\$ )?(tieredctl (?:[^\\\n]|\\\n)*)", re.MULTILINE)
"""A command line within a block, with the lines that continue it."""
PAGES = sorted({*pages(), *(REPOSITORY / page for page in OUTSIDE if page != "CHANGELOG.md")})
"""All pages of the site that people write; what is no longer so is told in the changelog."""
LONGEST = 3
"""Words of a command's name."""


@pytest.fixture(scope="module")
def options() -> dict[tuple[str, ...], set[str]]:
    """The options of each command, and of nouns that only have verbs none."""
    alone: dict[tuple[str, ...], set[str]] = {(noun,): set() for noun in nouns()}
    return alone | {words: options_of(command) for noun in nouns() for words, command in commands_of(noun)}


def options_of(command: Any) -> set[str]:
    return EVERYWHERE.union(*((*one.opts, *one.secondary_opts) for one in command.params))


def mentioned(page: Path) -> Iterator[tuple[bool, list[str]]]:
    """Whether a span of code begins with the program's name, and its other words."""
    text = page.read_text(encoding="utf-8")
    typed = (line for block in FENCED.findall(text) for line in TYPED.findall(block))
    for span in (*re.findall(r"`([^`]+)`", FENCED.sub("", text)), *typed):
        words = span.partition(" # ")[0].partition(" | ")[0].replace("\\\n", " ").split()
        is_whole = words[:1] == ["tieredctl"]
        if words[is_whole:]:
            yield is_whole, words[is_whole:]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_mentioned_command_has_its_options(page: Path, options: dict[tuple[str, ...], set[str]]) -> None:
    for is_whole, words in mentioned(page):
        length = next((length for length in range(LONGEST, 0, -1) if tuple(words[:length]) in options), 0)
        if is_whole and not words[0].startswith("-"):
            assert length, f"`{' '.join(words)}` is no command"
        known = options[tuple(words[:length])] if length else set()
        if known:
            strange = [one for word in words[length:] for one in OPTION.findall(word) if one not in known]
            assert not strange, f"`{' '.join(words)}` has no {strange[0]}"

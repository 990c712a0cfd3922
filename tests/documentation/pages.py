"""What the pages of the documentation tell to type, and what they say that it prints.

A command is a line `$ …` of a fenced block, and what follows it until the next one is its output. Comments of HTML,
which readers do not see, say how it is run:

    <!-- commands: PLACE -->       the next ones, in a fresh copy of that place (tests/documentation/places.py)
    <!-- before: SHELL COMMANDS -->  done first, unseen
    <!-- not run: REASON -->       the next block is not

In output, `…` stands for anything within a line, and a line of `…` alone for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.command_line import REPOSITORY

PROMPT = "$ "
_PIECE = re.compile(
    r"^ *<!-- (?P<kind>commands|before|not run):\s+(?P<words>.*?)\s*-->"
    r"|^(?P<indent> *)(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<block>.*?)^ *(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
_CONTINUES = re.compile(r"\\\n\s*")


@dataclass(frozen=True)
class Command:
    """A line to type, or what a story needs unseen before the next one (`printed` is None)."""

    line_number: int
    typed: str
    printed: tuple[str, ...] | None


@dataclass
class Story:
    """Commands that a page runs one after the other in one place."""

    page: Path
    place: str
    commands: list[Command] = field(default_factory=list)

    def __str__(self) -> str:
        line = self.commands[0].line_number if self.commands else 0
        return f"{name_of(self.page)}:{line} {self.place}"


@dataclass(frozen=True)
class NotRun:
    """A block that no test runs, and why."""

    page: Path
    line_number: int
    reason: str
    commands: tuple[Command, ...]


def pages() -> list[Path]:
    """The README, and all that is in docs."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """Its path in the repository."""
    return page.relative_to(REPOSITORY).as_posix() if page.is_relative_to(REPOSITORY) else page.name


def read(page: Path) -> tuple[list[Story], list[NotRun]]:
    """A page's stories in their order, and what of it is not run: without a reason, where no place is named."""
    text = page.read_text(encoding="utf-8")
    stories: list[Story] = []
    not_run: list[NotRun] = []
    reason: str | None = None
    for piece in _PIECE.finditer(text):
        line_number = text.count("\n", 0, piece.start()) + 1
        words = " ".join((piece["words"] or "").split()) if piece["kind"] != "before" else piece["words"]
        if piece["kind"] == "commands":
            stories.append(Story(page, words))
        elif piece["kind"] == "before":
            stories[-1].commands.append(Command(line_number, words, None))
        elif piece["kind"] == "not run":
            reason = words
        elif commands := tuple(_commands(piece, line_number)):
            if stories and reason is None:
                stories[-1].commands.extend(commands)
            else:
                not_run.append(NotRun(page, line_number, reason or "", commands))
            reason = None
    return [story for story in stories if story.commands], not_run


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, language and text of each fenced block."""
    text = page.read_text(encoding="utf-8")
    for piece in _PIECE.finditer(text):
        if piece["fence"]:
            yield text.count("\n", 0, piece.start()) + 1, piece["language"].strip(), piece["block"]


def _commands(piece: re.Match[str], line_number: int) -> Iterator[Command]:
    indent = len(piece["indent"])
    lines = [line[indent:] for line in piece["block"].splitlines()]
    typed: str | None = None
    printed: list[str] = []
    began = 0
    for number, line in enumerate(lines, start=line_number + 1):
        if typed is not None and typed.endswith("\\"):
            typed += f"\n{line}"
        elif line.startswith(PROMPT):
            if typed is not None:
                yield Command(began, _joined(typed), tuple(printed))
            typed, printed, began = line.removeprefix(PROMPT), [], number
        elif typed is not None:
            printed.append(line)
    if typed is not None:
        yield Command(began, _joined(typed), tuple(printed))


def _joined(typed: str) -> str:
    return _CONTINUES.sub(" ", typed)

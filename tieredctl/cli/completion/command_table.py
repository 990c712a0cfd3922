"""All commands with their options as a table, for what must not wait until Typer is loaded: completions, man pages,
commands that are to be pasted.

`make completions` writes the table from the commands themselves (`cli/command_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tieredctl.model.command_packages import BEFORE_PACKAGES, TABLE, command_packages

TABLE_FILE = Path(__file__).with_name(TABLE)
COMMAND, OPTION, ARGUMENT = "command", "option", "argument"
FLAG = "flag"
"""The kind of an option without values."""
_LINE_BREAK, _ESCAPED_LINE_BREAK = "\n", "\\n"


class Parameter(NamedTuple):
    """An option, or an argument."""

    names: tuple[str, ...]
    kind: str
    """What its values are, by `completing.py`, or FLAG."""
    metavar: str
    repeats: bool
    help: str


class Command(NamedTuple):
    """A command, or a noun with commands in it."""

    words: tuple[str, ...]
    help: str
    options: Mapping[str, Parameter]
    arguments: Sequence[Parameter]


class CommandTable:
    """The table, of which only the lines that are asked for are taken apart."""

    def __init__(self, text: str) -> None:
        self._text = f"\n{text}\n"

    @classmethod
    def installed(cls) -> CommandTable:
        """The table of this tieredctl and of installed packages. Raises OSError without one."""
        return cls(_merged(cls.own(), [package.table() for package in command_packages()]))

    @classmethod
    def own(cls) -> str:
        """The rows of tieredctl's own commands. Raises OSError without any."""
        return TABLE_FILE.read_text(encoding="utf-8")

    def commands(self) -> Iterator[tuple[str, ...]]:
        """The words of each, in the help's order; the program itself has none."""
        for line in self._text.splitlines():
            path, _, rest = line.partition("\t")
            if rest.startswith(COMMAND):
                yield tuple(path.split())

    def has(self, words: Sequence[str]) -> bool:
        """Whether these words name a command."""
        return f"\n{' '.join(words)}\t{COMMAND}\t" in self._text

    def verbs(self, words: Sequence[str]) -> dict[str, str]:
        """The commands within one, each with its line of help."""
        depth = len(words)
        helps = {}
        for line in self._lines(" ".join(words) + (" " if words else "")):
            path, what, *fields = line.split("\t")
            named = path.split()
            if what == COMMAND and len(named) == depth + 1:
                helps[named[-1]] = first_sentence(_unescaped(fields[0]))
        return helps

    def command(self, words: Sequence[str]) -> Command:
        """The command that these words name."""
        help_text, arguments = "", list[Parameter]()
        options: dict[str, Parameter] = {}
        for line in self._lines(" ".join(words) + "\t"):
            _, what, *fields = line.split("\t")
            if what == COMMAND:
                help_text = _unescaped(fields[0])
                continue
            names, kind, metavar, repeats, help_line = fields
            parameter = Parameter(tuple(names.split()), kind, metavar, repeats == "repeats", _unescaped(help_line))
            if what == ARGUMENT:
                arguments.append(parameter)
            else:
                options |= dict.fromkeys(parameter.names, parameter)
        return Command(tuple(words), help_text, options, arguments)

    def _lines(self, beginning: str) -> Iterator[str]:
        """The lines that begin so."""
        wanted, at = f"\n{beginning}", 0
        while 0 <= (at := self._text.find(wanted, at)) < len(self._text) - 2:
            end = self._text.find("\n", at + 1)
            yield self._text[at + 1 : end]
            at += 1


def _merged(own: str, others: Sequence[str]) -> str:
    """One table of several: each noun's rows together, other packages' after those of the package that has the noun."""
    own_rows, other_rows = _by_noun([own]), _by_noun(others)
    lines: list[str] = []
    for noun, rows in own_rows.items():
        lines += rows + other_rows.pop(noun, [])
        if noun == BEFORE_PACKAGES:
            lines += [row for name in sorted(other_rows.keys() - own_rows.keys()) for row in other_rows[name]]
    return "\n".join(lines)


def _by_noun(texts: Sequence[str]) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for line in (line for text in texts for line in text.splitlines()):
        rows.setdefault(line.partition("\t")[0].partition(" ")[0], []).append(line)
    return rows


def row(words: Sequence[str], what: str, *fields: str) -> str:
    """A line of the table."""
    return "\t".join([" ".join(words), what, *map(_escaped, fields)])


def first_sentence(text: str) -> str:
    """What a list of commands has room for."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", " ").replace(_LINE_BREAK, _ESCAPED_LINE_BREAK)


def _unescaped(text: str) -> str:
    return "\\".join(part.replace(_ESCAPED_LINE_BREAK, _LINE_BREAK) for part in text.split("\\\\"))

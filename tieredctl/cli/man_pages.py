"""Manual pages, one for each command, by the table of commands: building a wheel needs no package for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tieredctl import __version__
from tieredctl.cli import PROGRAM
from tieredctl.cli.completion.command_table import Command, CommandTable, Parameter, first_sentence
from tieredctl.errors import EXIT_CODE_MEANINGS

_EXAMPLE = "For example: "
_MARKED = re.compile(r"`([^`]+)`")


def man_pages(table: CommandTable) -> dict[str, str]:
    """Each page's file name and its text, in roff; all of section 1."""
    return {f"{_name(words)}.1": _page(table, words) for words in table.commands()}


def written_man_pages(table: CommandTable, folder: Path) -> dict[str, str]:
    """Writes the pages into a folder. By its path, where a wheel has each, as hatchling's `shared_data` has it."""
    placed = {}
    for name, text in man_pages(table).items():
        page = folder / name
        page.write_text(text, encoding="ascii")
        placed[str(page)] = f"share/man/man1/{name}"
    return placed


def _page(table: CommandTable, words: tuple[str, ...]) -> str:
    command = table.command(words)
    paragraphs = [" ".join(one.split()) for one in command.help.split("\n\n")]
    described = [one for one in paragraphs if not one.startswith(_EXAMPLE)]
    examples = [one.removeprefix(_EXAMPLE) for one in paragraphs if one.startswith(_EXAMPLE)]
    title = _name(words)
    lines = [
        f'.TH "{title.upper()}" "1" "" "{PROGRAM} {__version__}" "{PROGRAM}"',
        ".SH NAME",
        f"{_plain(title)} \\- {_plain(first_sentence(command.help))}",
        ".SH SYNOPSIS",
        *_synopsis(table, command),
        ".SH DESCRIPTION",
        *_paragraphs(described),
        *_section("ARGUMENTS", map(_argument, command.arguments)),
        *_section("OPTIONS", map(_option, dict.fromkeys(command.options.values()))),
        *_section("COMMANDS", _verbs(table, words)),
    ]
    if examples:
        lines += [".SH EXAMPLES", *(line for one in examples for line in (".PP", f"\\fB{_plain(one)}\\fR"))]
    lines += _section("EXIT STATUS", ((str(int(code)), meaning) for code, meaning in EXIT_CODE_MEANINGS.items()))
    lines += [".SH SEE ALSO", ", ".join(_reference(one) for one in _others(table, words))]
    return "\n".join(lines) + "\n"


def _name(words: Iterable[str]) -> str:
    return "-".join([PROGRAM, *words])


def _synopsis(table: CommandTable, command: Command) -> Iterator[str]:
    verb = ["COMMAND"] if table.verbs(command.words) else []
    values = [f"{one.metavar}{' ...' if one.repeats else ''}" for one in command.arguments]
    yield f"\\fB{_plain(' '.join([PROGRAM, *command.words]))}\\fR {_plain(' '.join(['[OPTIONS]', *verb, *values]))}"


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (".PP", _bold_code(text))


def _section(title: str, entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    listed = list(entries)
    if listed:
        yield f".SH {title}"
    for term, text in listed:
        yield from (".TP", term, _bold_code(text))


def _argument(argument: Parameter) -> tuple[str, str]:
    return f"\\fI{_plain(argument.metavar)}\\fR", argument.help or "Required."


def _option(option: Parameter) -> tuple[str, str]:
    names = ", ".join(f"\\fB{_plain(name)}\\fR" for name in option.names)
    return (f"{names} \\fI{_plain(option.metavar)}\\fR" if option.metavar else names), option.help


def _verbs(table: CommandTable, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for verb, meaning in table.verbs(words).items():
        yield _reference((*words, verb)), f"{meaning}."


def _others(table: CommandTable, words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The command around it; for the program, its commands."""
    return [words[:-1]] if words else [(noun,) for noun in table.verbs(())]


def _reference(words: Iterable[str]) -> str:
    return f"\\fB{_plain(_name(words))}\\fR(1)"


def _bold_code(text: str) -> str:
    return _MARKED.sub(r"\\fB\1\\fR", _plain(text))


def _plain(text: str) -> str:
    """Text that roff takes for nothing else, wherever it stands."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped

"""A command line that is still being typed, by the table of commands: nothing of it is run, and any text is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.cli.completion.command_table import FLAG, Command, CommandTable, Parameter


class HalfTyped(NamedTuple):
    """What the words say so far."""

    command: Command
    options: Sequence[tuple[str, str]]
    """By their first name, each with its value; flags with an empty one."""
    arguments: Sequence[str]
    awaited: Parameter | None
    """The option whose value comes next."""
    only_arguments: bool
    """Whether -- was typed."""

    def values(self, name: str) -> list[str]:
        """What was given for an option."""
        return [value for option, value in self.options if option == name]


def half_typed(table: CommandTable, words: Sequence[str]) -> HalfTyped:
    """What these words say, without the program's name."""
    root = table.command(())
    command, named = root, list[str]()
    options: list[tuple[str, str]] = []
    arguments: list[str] = []
    awaited: Parameter | None = None
    only_arguments = False
    for word in words:
        if awaited is not None:
            options.append((awaited.names[0], word))
            awaited = None
        elif only_arguments or not word.startswith("-") or word == "-":
            if not arguments and not only_arguments and table.has([*named, word]):
                named.append(word)
                command = table.command(named)
            else:
                arguments.append(word)
        elif word == "--":
            only_arguments = True
        else:
            name, equals, value = word.partition("=")
            option = command.options.get(name) or root.options.get(name)
            if option is None:
                continue
            if option.kind != FLAG and not equals:
                awaited = option
            else:
                options.append((option.names[0], value))
    return HalfTyped(command, options, arguments, awaited, only_arguments)


def words_of(line: str) -> tuple[list[str], str]:
    """The words of a line as a POSIX shell takes them, without expanding anything; and how the last of them, which may
    be empty or have an open quote, is spelled."""
    words: list[str] = []
    word, start, quote = "", None, ""
    at = 0
    while at < len(line):
        character = line[at]
        following = line[at + 1 : at + 2]
        if quote == "'" or (quote and character != "\\"):
            if character == quote:
                quote = ""
            else:
                word += character
        elif character == "\\":
            start = at if start is None else start
            literal = quote == '"' and following not in ('"', "\\", "$", "`")
            word += f"\\{following}" if literal else following
            at += 1
        elif character in "'\"":
            start = at if start is None else start
            quote = character
        elif character.isspace():
            if start is not None:
                words.append(word)
            word, start = "", None
        else:
            start = at if start is None else start
            word += character
        at += 1
    words.append(word)
    return words, "" if start is None else line[start:]

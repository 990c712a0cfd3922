"""Lines that break between words where a terminal is narrow; of a command, so that it can still be pasted."""

from __future__ import annotations

import re
import textwrap

_LEAST_WIDTH = 20
_OPTION_AND_VALUE = re.compile(r"(--[a-z-]+) (?!-)")
_TIED = re.compile(r"`[^`]*`|-o [a-z]+")
_COMMANDS = ("tieredctl ", "kafka-")
_SENTENCE_AND_COMMAND = re.compile(rf"(.*: )((?:{'|'.join(_COMMANDS)}).*)", re.DOTALL)
_TIE = "\0"
"""Stands for a space at which no line is broken."""


def broken(text: str, width: int | None) -> list[str]:
    """A line as lines of this width, those after the first indented. A command that it ends with, after a colon, is
    apart from it, and can be pasted. Without a width, the line as it is."""
    if width is None or len(text) <= width:
        return [text]
    if match := _SENTENCE_AND_COMMAND.fullmatch(text):
        sentence, command = match.groups()
        return [*broken(sentence.rstrip(), width), *broken_command(command, width)]
    tied = _TIED.sub(lambda quoted: quoted[0].replace(" ", _TIE), text)
    indent = " " * (2 + len(text) - len(text.lstrip()))
    return [line.replace(_TIE, " ") for line in _wrapped(tied, width, indent)]


def broken_command(text: str, width: int | None) -> list[str]:
    """A command, indented, as lines of this width that a shell takes for one; an option stays with its value."""
    if width is None or "'" in text:  # a quoted word is not divided
        return [f"    {text}"]
    tied = _OPTION_AND_VALUE.sub(rf"\1{_TIE}", text)
    lines = [line.replace(_TIE, " ") for line in _wrapped(f"    {tied}", width - 2, " " * 6)]
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]] if text.startswith(_COMMANDS) else lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    words = text.lstrip()
    return textwrap.wrap(
        words,
        max(width, _LEAST_WIDTH),
        initial_indent=text[: len(text) - len(words)],
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    ) or [text]

"""Text files by line, as Java's BufferedReader sees them: a line ends with `\\n`, `\\r` or both."""

from __future__ import annotations

import re
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import Primitive
from tieredctl.formats.varints import Buffer

_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_LONGEST_SHOWN = 40


class Line(NamedTuple):
    """A line without its end, and the byte at which it begins."""

    position: int
    text: str


def lines_of(data: Buffer) -> list[Line]:
    """The lines of a UTF-8 text; the last may lack its end. Raises DecodeError on other bytes."""
    content = bytes(data)
    lines = []
    position = 0
    while position < len(content):
        match = _LINE.match(content, position)
        assert match is not None  # the pattern fits everywhere
        lines.append(Line(position, _decoded(match.group(1), position)))
        position = match.end()
    return lines


def whole_number(text: str, kind: Primitive, position: int) -> int:
    """A decimal number as Java parses it for a type of this width. Raises DecodeError."""
    largest = (1 << kind.width * 8 - 1) - 1
    if not _WHOLE_NUMBER.fullmatch(text) or not -largest - 1 <= int(text) <= largest:
        raise DecodeError(f"{text[:_LONGEST_SHOWN]!r} is not a whole number of {kind.width * 8} bits", position)
    return int(text)


def _decoded(line: bytes, position: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("text is not UTF-8", position + error.start) from None

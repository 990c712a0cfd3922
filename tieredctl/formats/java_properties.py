"""Java's properties files (java.util.Properties): Latin-1, `key=value` a line, with escapes and continued lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tieredctl.errors import DecodeError
from tieredctl.formats.varints import Buffer

LARGEST_PROPERTIES_FILE = 1 << 22
"""In bytes, far more than any has: a device has no end."""
_CHARSET = "latin-1"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BLANKS = " \t\f"
_COMMENT_MARKS = "#!"
# A key ends at the first separator without a backslash before it.
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES = {character: "\\" + letter for letter, character in _ESCAPED.items()} | {
    character: "\\" + character for character in "\\=:#!"
}


def read_properties(data: Buffer) -> dict[str, str]:
    """The properties in the file's order; the last wins where a key comes twice. Raises DecodeError on a `\\u` without
    four hexadecimal digits."""
    properties = {}
    for position, line in _logical_lines(bytes(data).decode(_CHARSET)):
        key = _KEY.match(line)
        assert key is not None  # the pattern fits everywhere
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        properties[_unescaped(key.group(), position)] = _unescaped(line[separator.end() :], position)
    return properties


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """One line per property, in the mapping's order, without the comments that Java puts in front."""
    lines = (f"{_escaped(key, ' ')}={_escaped_value(value)}\n" for key, value in properties.items())
    return "".join(lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The start of each line, and the line with its continuations; without blank lines and comments."""
    position = 0
    while position < len(text):
        start = position
        line, position = _natural_line(text, position)
        if not line or line[0] in _COMMENT_MARKS:
            continue
        parts = []
        while _continues(line) and position < len(text):
            parts.append(line[:-1])
            line, position = _natural_line(text, position)
        # A backslash at the end of the file continues nothing.
        parts.append(line[:-1] if _continues(line) else line)
        yield start, "".join(parts)


def _natural_line(text: str, position: int) -> tuple[str, int]:
    match = _LINE.match(text, position)
    assert match is not None  # the pattern fits everywhere
    return match.group(1).lstrip(_BLANKS), match.end()


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, position: int) -> str:
    def plain(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] != "u":
            return _ESCAPED.get(escape, escape)
        if len(escape) == 1:
            raise DecodeError("property has a \\u without four hexadecimal digits", position)
        return chr(int(escape[1:], 16))

    return _joined_surrogates(_ESCAPE.sub(plain, text))


def _joined_surrogates(text: str) -> str:
    """Java escapes a character beyond 16 bits as two halves; a single half is not a character."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _escaped_value(value: str) -> str:
    body = value.lstrip(" ")
    return "\\ " * (len(value) > len(body)) + " " * (len(value) - len(body) - 1) + _escaped(body, "")


def _escaped(text: str, blank: str) -> str:
    return "".join(
        "\\ " if character == blank else _ESCAPES.get(character) or _printable(character) for character in text
    )


def _printable(character: str) -> str:
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))

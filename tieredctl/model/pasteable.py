"""Commands to paste into a shell, filled with names that others chose."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from shlex import quote

from tieredctl.model.key_text import key_bytes

_OWN = "tieredctl "
_COMMANDS = (_OWN, "kafka-", "ls ")
_NAMES = ("{topic}", "{key}", "{file}")
"""What may begin with a dash and is no id: commands take ids as they are."""


def quoted(text: str) -> str:
    """A text as one word of a shell, on one line. What cannot be shown is spelled as bash, ksh and zsh read it: the
    escape of such a text would be another one in plain quotes."""
    return quote(text) if text.isprintable() else f"$'{''.join(map(_spelled, text))}'"


def _spelled(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    # Three digits end each, whatever follows.
    return "".join(f"\\{byte:03o}" for byte in key_bytes(character))


def pasteable(template: str, values: Mapping[str, object]) -> str:
    """A template such as `tieredctl topic status {topic} …`, filled so that a shell takes each value as one word, and
    tieredctl none of them for an option; in capitals what `values` lacks. A template that is no command is filled with
    the values as they are, and `{command}` always is."""
    blanks = _Blanks(values, is_command=template.startswith(_COMMANDS))
    return (_dashed_last(template, blanks) if template.startswith(_OWN) else template).format_map(blanks)


class _Blanks:
    """What fills a template."""

    def __init__(self, values: Mapping[str, object], *, is_command: bool) -> None:
        self._values = values
        self._is_command = is_command

    def __getitem__(self, key: str) -> str:
        if key not in self._values:
            return key.upper()
        text = str(self._values[key])
        return quoted(text) if self._is_command and key != "command" else text


def _dashed_last(template: str, blanks: _Blanks) -> str:
    """The template with an argument that would be taken for an option, as a topic's name may be, after `--`."""
    words = template.split(" ")
    for option, word in pairwise(words):
        is_name = word.startswith(_NAMES) and not option.startswith("--")
        if is_name and word.format_map(blanks).lstrip("$'").startswith("-"):
            return " ".join([*(one for one in words if one != word), "--", word])
    return template

"""A JSON document of a command, read piece by piece: its items may be millions, and only what they are is counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from tieredctl.model.findings import FINDING_KINDS

_PIECE = 1 << 20
"""In characters."""
_LONGEST_VALUE = 1 << 24
"""Of an item, or of anything beside them, in characters; longer ones are not ours."""
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_ITEMS = "items"
_CUT_NUMBER = len("e+1")
"""With fewer characters after it, a number may go on in the next piece."""


@dataclass(frozen=True, slots=True)
class ResultDocument:
    """All members but the items."""

    members: dict[str, Any] = field(default_factory=dict)
    kinds: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    """How many items have each code of a finding and each `severity`; None for what an item does not have."""


def read_document(file: TextIO) -> ResultDocument:
    """Reads all of it. Raises ValueError for what is not one whole JSON object, and RecursionError."""
    text, found = _Pieces(file), ResultDocument()
    text.demand("{")
    for name in text.members():
        if name == _ITEMS:
            found.kinds.update(_kind(item) for item in text.elements())
        else:
            found.members[name] = text.value()
    text.demand_end()
    return found


def _kind(item: Any) -> tuple[str | None, str | None]:
    code, severity = (item.get(name) if isinstance(item, dict) else None for name in ("code", "severity"))
    is_known = isinstance(code, str) and code in FINDING_KINDS
    return code if is_known else None, severity if isinstance(severity, str) else None


class _Pieces:
    """Of a text, that which was not decoded yet; as much as the next value needs."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text, self._at = "", 0

    def members(self) -> Iterator[str]:
        """The names of an object that was begun; the value of each is to be taken before the next."""
        if self._next() == "}":
            self.demand("}")
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise ValueError(name)
            self.demand(":")
            yield name
            if self.demand(",}") == "}":
                return

    def elements(self) -> Iterator[Any]:
        """Those of an array that begins here."""
        self.demand("[")
        if self._next() == "]":
            self.demand("]")
            return
        while True:
            yield self.value()
            if self.demand(",]") == "]":
                return

    def value(self) -> Any:
        """The next one, whole."""
        self._next()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except ValueError:
                if not self._read():
                    raise
                continue
            length = end - self._at
            if end + _CUT_NUMBER <= len(self._text) or not self._read():
                self._at += length
                return found

    def demand(self, expected: str) -> str:
        """The next character, which is one of these."""
        found = self._next()
        if not found or found not in expected:
            raise ValueError(found)
        self._at += 1
        return found

    def demand_end(self) -> None:
        """Nothing follows."""
        if found := self._next():
            raise ValueError(found)

    def _next(self) -> str:
        """The next character that is not a space, which stays; none at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def _read(self) -> bool:
        """Adds a piece, and forgets what was decoded; False at the end. Each is as long as what is kept, so that a long
        value is not decoded again too often."""
        left = self._text[self._at :]
        if len(left) > _LONGEST_VALUE:
            raise ValueError("too long")
        piece = self._file.read(max(_PIECE, len(left)))
        self._text, self._at = left + piece, 0
        return bool(piece)

"""Topic names that are not to be seen: hashes stand for them, the same throughout one bundle."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from hashlib import sha256

_DIGITS = 10
_WORD = re.compile(r"[A-Za-z0-9._-]+")
"""What Kafka takes as a name, and what `orders-0` is."""
_SEPARATOR = "-"


class HiddenNames:
    """Finds them as words, alone and in what is made of them: `orders-0`, `prod/orders-ID/0`. The time that it takes
    does not grow with the names: a cluster may have thousands."""

    def __init__(self, names: Collection[str]) -> None:
        salt = secrets.token_bytes(16)
        self._hashes = {name: f"topic-{sha256(salt + name.encode()).hexdigest()[:_DIGITS]}" for name in names}
        self._most_pieces = max((name.count(_SEPARATOR) + 1 for name in names), default=0)
        odd = sorted((name for name in names if not _WORD.fullmatch(name)), key=len, reverse=True)
        self._odd = re.compile("|".join(map(re.escape, odd))) if odd else None
        """Those that Kafka would not take, but metadata may have."""

    def in_text(self, text: str) -> str:
        """The text with hashes for the names."""
        if self._odd is not None:
            text = self._odd.sub(lambda found: self._hashes[found[0]], text)
        return _WORD.sub(lambda word: _SEPARATOR.join(self._hidden(word[0].split(_SEPARATOR))), text)

    def _hidden(self, pieces: list[str]) -> Iterator[str]:
        at = 0
        while at < len(pieces):
            most = min(self._most_pieces, len(pieces) - at)
            joined = ((count, _SEPARATOR.join(pieces[at : at + count])) for count in range(most, 0, -1))
            count, text = next(((count, self._hashes[one]) for count, one in joined if one in self._hashes), (1, None))
            yield pieces[at] if text is None else text
            at += count

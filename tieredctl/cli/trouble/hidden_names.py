"""Topic names that are not to be seen: hashes stand for them, the same throughout one bundle."""

from __future__ import annotations

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator
from hashlib import sha256
from shlex import quote

from tieredctl.model.printable import printable

_DIGITS = 10
_WORD = re.compile(r"[A-Za-z0-9._-]+")
"""What Kafka takes as a name, and what `orders-0` is."""
_SEPARATOR = "-"
_FULL_STOP = "."


class HiddenNames:
    """Finds them as words, alone and in what is made of them: `orders-0`, `prod/orders-ID/0`; also at the end of a
    sentence. The time that it takes does not grow with the names: a cluster may have thousands."""

    def __init__(self, names: Collection[str]) -> None:
        salt = secrets.token_bytes(16)
        self._hashes = {name: f"topic-{sha256(salt + name.encode()).hexdigest()[:_DIGITS]}" for name in names}
        self._by_core: dict[str, list[str]] = defaultdict(list)
        """Names, which may begin or end with full stops, by what is between these."""
        for name in names:
            self._by_core[name.strip(_FULL_STOP)].append(name)
        self._most_pieces = max((name.count(_SEPARATOR) + 1 for name in names), default=0)
        self._odd_hashes = {
            spelled: self._hashes[name] for name in names if not _WORD.fullmatch(name) for spelled in _spellings(name)
        }
        odd = sorted(self._odd_hashes, key=len, reverse=True)
        self._odd = re.compile("|".join(map(re.escape, odd))) if odd else None
        """Those that Kafka would not take, but metadata may have."""

    def in_text(self, text: str) -> str:
        """The text with hashes for the names."""
        if self._odd is not None:
            text = self._odd.sub(lambda found: self._odd_hashes[found[0]], text)
        return _WORD.sub(lambda word: _SEPARATOR.join(self._hidden(word[0].split(_SEPARATOR))), text)

    def in_path(self, text: str) -> str:
        """The same for a file's path, or a sentence that names one: files may be called `orders.json`."""
        text = self.in_text(text)
        for name in sorted((name for name in self._hashes if name in text), key=len, reverse=True):
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", self._hashes[name], text)
        return text

    def _hidden(self, pieces: list[str]) -> Iterator[str]:
        at = 0
        while at < len(pieces):
            most = min(self._most_pieces, len(pieces) - at)
            for count in range(most, 0, -1):
                text = self._hidden_name(_SEPARATOR.join(pieces[at : at + count]))
                if text is not None:
                    break
            else:
                count, text = 1, pieces[at]
            yield text
            at += count

    def _hidden_name(self, word: str) -> str | None:
        """What stands for a name, with the full stops around it; None where the word is no name."""
        alike = (name for name in self._by_core.get(word.strip(_FULL_STOP), ()) if name in word)
        name = max(alike, key=len, default=None)
        return None if name is None else word.replace(name, self._hashes[name])


def _spellings(name: str) -> set[str]:
    """How a name that Kafka would not take is written: as it is, in a command, in a sentence and in a document."""
    return {name, quote(name), repr(name)[1:-1], json.dumps(name)[1:-1], printable(name)}

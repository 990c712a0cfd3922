"""What somebody may have meant who typed an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from heapq import nlargest
from itertools import takewhile
from operator import eq

_MOST = 3
_MOST_COMPARED = 500
"""A comparison takes as long as both names' lengths multiplied: all topics of a large cluster would take seconds."""


def nearest_hint(name: str | None, names: Iterable[str]) -> str | None:
    """`Did you mean orders or orders-eu?`; None where no known name is like it."""
    if name is None:
        return None
    letters = _letters(name)
    by_letters = {_letters(one): one for one in sorted(set(names), reverse=True) if one != name}
    likely = nlargest(_MOST_COMPARED, by_letters, key=lambda one: (_same_at_the_ends(letters, one), -len(one)))
    alike = get_close_matches(letters, likely, _MOST)
    if not alike:
        return None
    *others, last = (by_letters[one] for one in alike)
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def nearest_value(stated: str, allowed: Iterable[str]) -> str | None:
    """The one of a few allowed values that was probably meant, whatever its case; None where none is like it."""
    by_letters = {one.lower(): one for one in allowed}
    alike = get_close_matches(stated.lower(), by_letters, 1)
    return by_letters[alike[0]] if alike else None


def _letters(name: str) -> str:
    """What is compared: all options begin with dashes."""
    return name.lower().lstrip("-")


def _same_at_the_ends(one: str, other: str) -> int:
    """How many characters two names begin and end with alike."""
    ends = (zip(one, other, strict=False), zip(reversed(one), reversed(other), strict=False))
    return sum(1 for pairs in ends for _ in takewhile(lambda pair: eq(*pair), pairs))

"""What somebody may have meant who typed an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 3
_MOST_COMPARED = 10_000


def nearest_hint(name: str | None, known: Iterable[str]) -> str | None:
    """`Did you mean orders or orders-eu?`; None where no known name is like it."""
    if name is None:
        return None
    by_letters = {_letters(one): one for one in sorted(set(known), reverse=True)[:_MOST_COMPARED] if one != name}
    alike = get_close_matches(_letters(name), by_letters, _MOST)
    if not alike:
        return None
    *others, last = (by_letters[one] for one in alike)
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def _letters(name: str) -> str:
    """What is compared: all options begin with dashes."""
    return name.lower().lstrip("-")

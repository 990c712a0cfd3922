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
    by_lower = {one.lower(): one for one in sorted(set(known), reverse=True)[:_MOST_COMPARED] if one != name}
    alike = get_close_matches(name.lower(), by_lower, _MOST)
    if not alike:
        return None
    *others, last = (by_lower[one] for one in alike)
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"

"""Sums of what may be unknown."""

from __future__ import annotations

from collections.abc import Iterable


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """The sum; None where one of them is not known, as a sum of the others would be too low."""
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total

"""Sums of what may be unknown."""

from __future__ import annotations

from collections.abc import Iterable


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """None where one of them is not known: a sum of the others would say too little."""
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total

"""What storing costs."""

from __future__ import annotations

from typing import NamedTuple

_GIB = 1 << 30


class StoragePrice(NamedTuple):
    """What a GiB costs for a month, in a currency by its ISO 4217 code."""

    per_gib_month: float
    currency: str

    def monthly_cost(self, size: int) -> float:
        """What so many bytes cost for a month, to the hundredth."""
        return round(size * self.per_gib_month / _GIB, 2)

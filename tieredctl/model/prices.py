"""What storing costs."""

from __future__ import annotations

from typing import NamedTuple

_GIB = 1 << 30


class StoragePrice(NamedTuple):
    """What a GiB costs for a month, and where that is known a thousand requests, in a currency by its ISO 4217 code."""

    per_gib_month: float
    currency: str
    per_thousand_puts: float | None = None
    per_thousand_gets: float | None = None

    def monthly_cost(self, size: int) -> float:
        """What so many bytes cost for a month, to the hundredth."""
        return round(size * self.per_gib_month / _GIB, 2)

    def puts_cost(self, requests: float) -> float | None:
        """What so many requests that write cost, to the hundredth; None where that is not known."""
        return _cost(requests, self.per_thousand_puts)

    def gets_cost(self, requests: float) -> float | None:
        """The same of requests that read."""
        return _cost(requests, self.per_thousand_gets)


def _cost(requests: float, per_thousand: float | None) -> float | None:
    return None if per_thousand is None else round(requests * per_thousand / 1000, 2)

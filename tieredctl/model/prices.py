"""What storing costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

_GIB = 1 << 30
_USUAL_CLASSES = ("", "STANDARD")
"""What a store's own price is of."""


class StoragePrice(NamedTuple):
    """What a GiB costs for a month, and where that is known a thousand requests, in a currency by its ISO 4217 code;
    and a GiB in the storage classes that have a price of their own."""

    per_gib_month: float
    currency: str
    per_thousand_puts: float | None = None
    per_thousand_gets: float | None = None
    class_prices: Mapping[str, float] = MappingProxyType({})

    def monthly_cost(self, size: int) -> float:
        """What `size` bytes cost for a month, to the hundredth."""
        return round(size * self.per_gib_month / _GIB, 2)

    def monthly_cost_of(self, class_bytes: Mapping[str, int]) -> float:
        """The same for bytes by their storage class, as the store calls it, empty where it does not say. A class
        without a price of its own costs what the store does."""
        parts = (size * self.class_prices.get(name, self.per_gib_month) for name, size in class_bytes.items())
        return round(sum(parts) / _GIB, 2)

    def without_price(self, classes: Collection[str]) -> list[str]:
        """The classes that are not the usual one, and have no price of their own."""
        return sorted(name for name in classes if name not in _USUAL_CLASSES and name not in self.class_prices)

    def puts_cost(self, requests: float) -> float | None:
        """What this many writing requests cost, to the hundredth; None where that is not known."""
        return _cost(requests, self.per_thousand_puts)

    def gets_cost(self, requests: float) -> float | None:
        """The same for reading requests."""
        return _cost(requests, self.per_thousand_gets)


def _cost(requests: float, per_thousand: float | None) -> float | None:
    return None if per_thousand is None else round(requests * per_thousand / 1000, 2)

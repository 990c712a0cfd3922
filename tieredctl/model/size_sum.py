"""Sizes together, some of which may be unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tieredctl.model.quantities import size_text


@dataclass(frozen=True, slots=True)
class SizeSum:
    """Bytes. Its text is for people: `3.0 GiB`, or `at least 3.0 GiB` where a size is unknown."""

    least: int = 0
    """The sum of the sizes that are known."""
    is_exact: bool = True
    """Whether all are."""

    @classmethod
    def of(cls, sizes: Iterable[int | None]) -> SizeSum:
        """The sum of sizes, of which None is unknown."""
        least, is_exact = 0, True
        for size in sizes:
            least += size or 0
            is_exact &= size is not None
        return cls(least, is_exact)

    @property
    def known(self) -> int | None:
        """The sum for documents: None where a size is unknown, as what is known would be too low."""
        return self.least if self.is_exact else None

    def __add__(self, other: SizeSum) -> SizeSum:
        return SizeSum(self.least + other.least, self.is_exact and other.is_exact)

    def __str__(self) -> str:
        return size_text(self.least) if self.is_exact else f"at least {size_text(self.least)}"


def total_size(sizes: Iterable[SizeSum]) -> SizeSum:
    """All together."""
    return sum(sizes, start=SizeSum())


def known_sum(amounts: Iterable[int | None]) -> int | None:
    """The sum; None where one of them is not known, as a sum of the others would be too low."""
    total = 0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total

"""Ranges of offsets, by columns: what they cover, what they leave out, what they cover more than once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OffsetRanges:
    """Ranges, in any order; both ends of each are inclusive."""

    firsts: Ints
    lasts: Ints

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> OffsetRanges:
        """Of a few."""
        columns = np.array(list(pairs), np.int64).reshape(-1, 2)
        return cls(columns[:, 0], columns[:, 1])

    def __len__(self) -> int:
        return len(self.firsts)

    def pairs(self) -> list[tuple[int, int]]:
        """Each one's first and last offset."""
        return list(zip(self.firsts.tolist(), self.lasts.tolist(), strict=True))

    def text(self, room: int) -> str:
        """`11..15, 20 and 3 more`: as many as so many characters have room for, and at least one."""
        texts = [str(first) if first == last else f"{first}..{last}" for first, last in self.pairs()]
        shown = len(texts)
        while shown > 1 and len(_first_of(texts, shown)) > room:
            shown = max(1, min(shown - 1, room))
        return _first_of(texts, shown)

    def joined(self) -> OffsetRanges:
        """What they cover, ascending: those that touch or overlap are one."""
        if not len(self):
            return self
        order = np.argsort(self.firsts, kind="stable")
        firsts, reached = self.firsts[order], np.maximum.accumulate(self.lasts[order])
        apart = (firsts[1:] > reached[:-1]) & (firsts[1:] - 1 != reached[:-1])
        begins = np.append([True], apart)
        return OffsetRanges(firsts[begins], reached[np.append(apart, [True])])

    def repeated(self) -> OffsetRanges:
        """What more than one of them covers, ascending."""
        order = np.argsort(self.firsts, kind="stable")
        firsts, lasts = self.firsts[order], self.lasts[order]
        reached = np.maximum.accumulate(lasts)[:-1]
        firsts, lasts = firsts[1:], np.minimum(lasts[1:], reached)
        some = firsts <= lasts
        return OffsetRanges(firsts[some], lasts[some]).joined()

    def within(self, first: int, last: int) -> OffsetRanges:
        """What of them lies between two offsets, both inclusive."""
        firsts, lasts = np.maximum(self.firsts, first), np.minimum(self.lasts, last)
        some = firsts <= lasts
        return OffsetRanges(firsts[some], lasts[some])

    def left_out(self, first: int, last: int) -> OffsetRanges:
        """What between two offsets, both inclusive, none of them covers; ascending."""
        if first > last:
            return NO_OFFSETS
        covered = self.within(first, last).joined()
        if not len(covered):
            return OffsetRanges.of([(first, last)])
        between = OffsetRanges(covered.lasts[:-1] + 1, covered.firsts[1:] - 1)
        start, end = int(covered.firsts[0]), int(covered.lasts[-1])
        before = [(first, start - 1)] if first < start else []
        after = [(end + 1, last)] if end < last else []
        return OffsetRanges.of([*before, *between.pairs(), *after])


def _first_of(texts: Sequence[str], shown: int) -> str:
    more = f" and {len(texts) - shown} more" if shown < len(texts) else ""
    return ", ".join(texts[:shown]) + more


NO_OFFSETS = OffsetRanges.of([])

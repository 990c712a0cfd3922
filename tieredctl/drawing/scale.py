"""Offsets on cells: exact for every offset that Kafka has, and every range gets a cell, however short it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Scale:
    """Offsets `first` to `last`, both inclusive, in equal shares on `width` cells."""

    first: int
    last: int
    width: int

    def cells(self, ranges: OffsetRanges) -> tuple[Ints, Ints]:
        """The first and the last cell of each range, both inclusive; what lies outside the scale is left out."""
        inside = ranges.within(self.first, self.last)
        span = self.last - self.first + 1
        begins = [self.first - (-number * span // self.width) for number in range(1, self.width)]
        ends = [self.first + number * span // self.width - 1 for number in range(1, self.width + 1)]
        firsts = np.searchsorted(np.array(begins, np.int64), inside.firsts, side="right")
        return firsts, np.searchsorted(np.array(ends, np.int64), inside.lasts, side="left")

    def cell(self, offset: int) -> int:
        """The cell in which an offset begins; that of the nearest one where it lies outside."""
        near = min(max(offset, self.first), self.last)
        return (near - self.first) * self.width // (self.last - self.first + 1)

    def offset(self, cell: int) -> int:
        """The offset that a cell begins with, or within."""
        return self.first + cell * (self.last - self.first + 1) // self.width

    def painted(self, layers: Iterable[tuple[int, OffsetRanges]]) -> Cells:
        """A number in each cell: that of the last layer that has a range there, 0 without any."""
        cells = np.zeros(self.width, np.int8)
        for number, ranges in layers:
            firsts, lasts = self.cells(ranges)
            depths = np.zeros(self.width + 1, np.int64)
            np.add.at(depths, firsts, 1)
            np.add.at(depths, lasts + 1, -1)
            cells[np.cumsum(depths[:-1]) > 0] = number
        return cells


def runs(cells: Cells) -> list[tuple[int, int, int]]:
    """Stretches of equal cells: (number, first cell, cell after the last)."""
    if not len(cells):
        return []
    edges = np.flatnonzero(cells[1:] != cells[:-1]) + 1
    begins, ends = np.append([0], edges), np.append(edges, [len(cells)])
    return list(zip(cells[begins].tolist(), begins.tolist(), ends.tolist(), strict=True))


def placed(labels: Iterable[tuple[int, str]], width: int, more: str = ".") -> str:
    """A line of this width with each text from its cell on, in ascending order. Where there is no room for one, `more`
    follows the text before it, or stands at its cell if that is near the end, or stands for the text before it."""
    line, begin, end = [" "] * width, -1, -1
    for cell, text in labels:
        has_room = cell + len(text) <= width
        if has_room and cell > end and line[cell - 1] == " ":
            begin, end = cell, cell + len(text)
            line[begin:end] = text
        elif not has_room and end < cell < width and line[end] == " ":
            line[cell] = more
            end = cell
        elif end < width:
            line[end] = more
        else:
            line[begin:] = more.ljust(width - begin)
            end = begin
    return "".join(line)


_EIGHTHS = ("", *(chr(code) for code in range(0x258F, 0x2587, -1)))
"""From nothing to a whole block."""
_WHOLE = len(_EIGHTHS) - 1


def bars(values: Sequence[int], width: int, *, ascii_only: bool = False) -> list[str]:
    """A bar for each number, none longer than `width` cells, which the greatest has. A number that is not zero has some
    bar, and a greater one none that is shorter. Raises ValueError for a negative number."""
    if min(values, default=0) < 0:
        raise ValueError("a bar has no negative length")
    greatest, steps = max(values, default=0), width if ascii_only else width * _WHOLE
    lengths = [-(-value * steps // greatest) if greatest else 0 for value in values]
    if ascii_only:
        return ["#" * length for length in lengths]
    return [_EIGHTHS[_WHOLE] * (length // _WHOLE) + _EIGHTHS[length % _WHOLE] for length in lengths]


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OffsetRanges:
    """Ranges, in any order; both ends of each are inclusive."""

    firsts: Ints
    lasts: Ints

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> OffsetRanges:
        """The ranges of a few pairs."""
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

"""Do base offsets rise within a segment's claim, and if not, which batch is to blame?

A batch's base offset lies outside its CRC, so only its neighbours and the metadata show that it was altered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.windows import Ints

_LOOK_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A batch whose offsets do not fit between its neighbours', or (`outside`) not into the segment's claim.

    `position` is its byte in the log; the expected offsets are inclusive, the last None where nothing follows.
    """

    position: int
    base_offset: int
    last_offset: int
    outside: bool
    first_expected: int
    last_expected: int | None


class OffsetOrder:
    """Takes a log's batches block by block; blames the fewest batches that make the rest rise."""

    def __init__(self, start_offset: int, end_offset: int) -> None:
        """The claim: both offsets inclusive."""
        self._start, self._end = start_offset, end_offset
        self._held = np.zeros((3, 0), np.int64)
        self.last_offset = -1
        """The last offset of what was judged so far."""

    def feed(self, positions: Ints, bases: Ints, lasts: Ints) -> list[Misplaced]:
        """The next batches. The last two are held back until what follows them is known."""
        rows = np.concatenate([self._held, np.stack([positions, bases, lasts])], axis=1)
        return self._judge(rows, max(rows.shape[1] - _LOOK_AHEAD, 0))

    def finish(self) -> list[Misplaced]:
        """The batches that were held back."""
        return self._judge(self._held, self._held.shape[1])

    def _judge(self, rows: Ints, count: int) -> list[Misplaced]:
        self._held = rows[:, count:]
        if not count:
            return []
        _, bases, lasts = rows
        within = bases[0] >= self._start and lasts[count - 1] <= self._end
        following = bases[1 : count + 1]
        if within and bases[0] > self.last_offset and (following > lasts[: len(following)]).all():
            self.last_offset = int(lasts[count - 1])
            return []
        return list(self._blame(rows.T.tolist(), count))

    def _blame(self, batches: list[list[int]], count: int) -> Iterator[Misplaced]:
        for index in range(count):
            position, base, last = batches[index]
            expected = self._expected
            following = [row[1] for row in batches[index + 1 : index + 1 + _LOOK_AHEAD]]
            expected_end = following[0] - 1 if following and following[0] > self.last_offset + 1 else None
            if base <= self.last_offset or self._overreaches(base, last, following):
                yield Misplaced(position, base, last, False, expected, expected_end)
                continue
            if base < self._start or last > self._end:
                yield Misplaced(position, base, last, True, expected, expected_end)
            self.last_offset = last

    @property
    def _expected(self) -> int:
        """Where the next batch begins in a log without holes."""
        return max(self.last_offset + 1, self._start)

    def _overreaches(self, base: int, last: int, following: list[int]) -> bool:
        """Whether a batch, rather than the next one, is why the two overlap."""
        if not following or not self.last_offset < following[0] <= last:
            return False
        if base == self._expected:
            return False
        moved_by_itself = following[0] == self._expected + (last - base) + 1
        return moved_by_itself or len(following) == 1 or following[1] <= last

"""The metadata log in the order of its batches: do offsets follow each other, where do epochs begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.log_scan import LogBlock
from tieredctl.formats.windows import Ints
from tieredctl.kraft.replica import EpochStart, LastBatch


class LogOrder:
    """A log, as far as it was taken."""

    def __init__(self, start: int | None, wanted: Sequence[int]) -> None:
        """`start`: the first segment's base offset, where its name says it. `wanted`: snapshots' end offsets."""
        self.start = start or 0
        self.end: int | None = start
        """Exclusive; None after damage, and in a log that says nowhere where it starts."""
        self.epochs: list[EpochStart] = []
        self.last_batches: dict[int, LastBatch] = {}
        """By those of the wanted end offsets before which the log has a record."""
        self.is_whole = True
        self._wanted = np.array(sorted(set(wanted)), np.int64)

    def begin_segment(self, base_offset: int | None) -> Iterator[DecodeError]:
        """What is wrong where the next segment begins."""
        if base_offset is not None and self.end is not None and base_offset != self.end:
            yield DecodeError(f"it begins with offset {base_offset}, and what is before it ends at {self.end}", 0)
            self.end = base_offset

    def skip(self) -> None:
        """What comes next is damaged."""
        self.end = None

    def take(self, block: LogBlock[HeaderColumns]) -> Iterator[DecodeError]:
        """Adds batches, and says where they do not follow those before."""
        bases = block.headers["baseOffset"].astype(np.int64)
        lasts = bases + block.headers["lastOffsetDelta"]
        epochs = block.headers["partitionLeaderEpoch"].astype(np.int64)
        following = np.append(bases[0] if self.end is None else self.end, lasts[:-1] + 1)
        for row in np.flatnonzero(bases != following).tolist():
            yield DecodeError(f"a batch begins with offset {bases[row]}, not {following[row]}", _position(block, row))
        before = np.append(self.epochs[-1].epoch if self.epochs else -1, epochs[:-1])
        for row in np.flatnonzero(epochs < before).tolist():
            yield DecodeError(f"epoch {epochs[row]} follows epoch {before[row]}", _position(block, row))
        self.epochs += [EpochStart(int(epochs[row]), int(bases[row])) for row in np.flatnonzero(epochs > before)]
        self._remember(bases, lasts, epochs, block.headers["maxTimestamp"].astype(np.int64))
        self.end = int(lasts[-1]) + 1

    def _remember(self, bases: Ints, lasts: Ints, epochs: Ints, timestamps: Ints) -> None:
        rows = np.searchsorted(bases, self._wanted - 1, "right") - 1
        for wanted, row in zip(self._wanted.tolist(), rows.tolist(), strict=True):
            if row >= 0 and bases[row] <= wanted - 1 <= lasts[row]:
                self.last_batches[wanted] = LastBatch(int(lasts[row]), int(epochs[row]), int(timestamps[row]))


def _position(block: LogBlock[HeaderColumns], row: int) -> int:
    return block.file_position + int(block.positions[row])

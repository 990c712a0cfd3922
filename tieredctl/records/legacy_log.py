"""Walks the messages of magic 0 and 1 that a log may begin with."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain

import numpy as np

from tieredctl.errors import DecodeError, UnfoldsTooFar
from tieredctl.formats.legacy_messages import (
    LEGACY_MAGICS,
    SHORTEST_MESSAGE,
    LegacyBatch,
    header_columns,
    message_end,
    read_legacy_batch,
)
from tieredctl.formats.log_scan import LARGEST_BATCH, Damage
from tieredctl.formats.record_batches import MAGIC_AT
from tieredctl.records.sound_batches import SoundBatches

_RECORDS_TOGETHER = 1 << 12


def begins_with_legacy(piece: bytes) -> bool:
    """Whether the first message of a piece claims to be one."""
    return len(piece) > MAGIC_AT and piece[MAGIC_AT] in LEGACY_MAGICS


def legacy_batches(
    pieces: Iterator[bytes], position: int, most_unfolded: int | None = None
) -> Generator[SoundBatches | Damage, None, tuple[Iterator[bytes], int]]:
    """The messages from a position of the log on, up to a batch of magic 2, or to damage after which no sound message
    follows; returns the pieces that are left, and where they begin. Memory follows the pieces and the largest message,
    for which `most_unfolded` is `decompress`'s limit."""
    walk, found, count = _Walk(pieces, position, most_unfolded), list[tuple[int, LegacyBatch]](), 0
    while walk.is_at_legacy():
        try:
            batch, end = walk.read(walk.position)
        except DecodeError as error:
            yield from _together(found)
            found, count = [], 0
            is_too_large = isinstance(error, UnfoldsTooFar)
            after = walk.end() if is_too_large else walk.sound_after()  # a CRC that matches covers the size
            if after is None:
                break
            yield Damage(walk.position, after, error.reason, None, is_too_large=is_too_large)
            walk.position = after
            continue
        found.append((walk.position, batch))
        walk.position, count = end, count + len(batch.records)
        if count >= _RECORDS_TOGETHER:
            yield from _together(found)
            found, count = [], 0
    yield from _together(found)
    return walk.rest(), walk.position


def _together(found: list[tuple[int, LegacyBatch]]) -> Iterator[SoundBatches]:
    if found:
        batches = [batch for _, batch in found]
        positions = np.array([position for position, _ in found], np.int64)
        yield SoundBatches(b"", 0, positions, header_columns(batches), batches)


class _Walk:
    """What was read and not passed: `_buffer[0]` lies at `_base` in the log."""

    def __init__(self, pieces: Iterator[bytes], position: int, most_unfolded: int | None) -> None:
        self.position = position
        """The position of the next message."""
        self._pieces = pieces
        self._most_unfolded = most_unfolded
        self._buffer = b""
        self._base = position

    def is_at_legacy(self) -> bool:
        """Whether the next message claims to be of magic 0 or 1."""
        self._ensure(self.position + MAGIC_AT + 1)
        at = self.position - self._base
        return begins_with_legacy(self._buffer[at : at + MAGIC_AT + 1])

    def read(self, position: int) -> tuple[LegacyBatch, int]:
        """The message at a position, and the position after it. Raises DecodeError."""
        end = self._end_of(position)
        return read_legacy_batch(self._buffer, position - self._base, end - self._base, self._most_unfolded), end

    def sound_after(self) -> int | None:
        """Where the next message, which is damaged, ends by its size; None unless a sound one follows there, or the log
        ends."""
        end = None
        try:
            end = self.end()
            if self._ensure(end + 1):
                self.read(end)
        except UnfoldsTooFar:
            return end
        except DecodeError:
            return None
        return end

    def end(self) -> int:
        """Where the next message ends by its size. Raises DecodeError."""
        return self._end_of(self.position)

    def rest(self) -> Iterator[bytes]:
        """The pieces from the next message on."""
        left = self._buffer[self.position - self._base :]
        return chain([left] if left else [], self._pieces)

    def _end_of(self, position: int) -> int:
        self._ensure(position + SHORTEST_MESSAGE)
        at = position - self._base
        end = message_end(self._buffer, at, len(self._buffer))
        if end is None or end - at > LARGEST_BATCH or not self._ensure(position + end - at):
            raise DecodeError("a message is cut short, or its size is wrong", position)
        return position + end - at

    def _ensure(self, end: int) -> bool:
        """Reads up to a position of the log; false where the log ends before. Drops what was passed."""
        reached = self._base + len(self._buffer)
        if reached >= end:
            return True
        pieces = [self._buffer[self.position - self._base :]]
        while reached < end and (piece := next(self._pieces, b"")):
            pieces.append(piece)
            reached += len(piece)
        self._buffer, self._base = b"".join(pieces), self.position
        return reached >= end

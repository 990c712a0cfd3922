"""Records of the event log on their way to the replay: many small files at a time, and never much that is unfolded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tieredctl.formats.columns import NULL
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.formats.windows import Ints
from tieredctl_proposals.wal.events import WalChunk, WalEvents

_HELD_BYTES, _HELD_RECORDS = 1 << 25, 1 << 18
_LAST_OFFSET = (1 << 63) - 1


class OddOffset(NamedTuple):
    """A record that does not continue the log."""

    offset: int
    expected: int


class GatheredEvents:
    """Hands records to `WalEvents` in the order of the log; holds few of them meanwhile."""

    def __init__(self, events: WalEvents) -> None:
        self._events = events
        self._partition = 0
        self._held: list[WalChunk] = []
        self._bytes = self._records = 0

    def add(self, metadata_partition: int, chunk: RecordChunk, end: int) -> tuple[int, OddOffset | None]:
        """Takes the next records of a partition, of which `end` is expected next; those below it are left out.

        Gives back what is expected after them, and the first that has another offset than the log would have given it.
        """
        if not len(chunk):
            return end, None
        offsets = np.asarray(chunk.offsets, np.int64)
        reached = np.maximum.accumulate(np.concatenate(([min(end - 1, _LAST_OFFSET)], offsets)))
        before, risen = reached[:-1], offsets > reached[:-1]
        odd = np.flatnonzero(~risen | (offsets - before != 1))
        self._hold(metadata_partition, chunk if risen.all() else chunk.at(np.flatnonzero(risen)))
        first_odd = OddOffset(int(offsets[odd[0]]), int(before[odd[0]]) + 1) if len(odd) else None
        return max(end, int(reached[-1]) + 1), first_odd

    def _hold(self, metadata_partition: int, chunk: RecordChunk) -> None:
        size = len(chunk.buffer)
        if (
            metadata_partition != self._partition
            or self._bytes + size > _HELD_BYTES
            or self._records + len(chunk) > _HELD_RECORDS
        ):
            self.flush()
        columns = (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
        offsets, timestamps, starts, ends = (np.asarray(column, np.int64) for column in columns)
        data = np.frombuffer(chunk.buffer, np.uint8)
        self._held.append(WalChunk(metadata_partition, offsets, timestamps, data, starts, ends))
        self._partition = metadata_partition
        self._bytes += size
        self._records += len(chunk)
        if self._bytes > _HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hands over what is held."""
        held, self._held = self._held, []
        self._bytes = self._records = 0
        if held:
            self._events.take(held[0] if len(held) == 1 else _joined(held))


def _joined(chunks: list[WalChunk]) -> WalChunk:
    """Chunks of one partition as one."""
    positions = np.cumsum([0, *(len(one.data) for one in chunks)])[:-1].tolist()
    starts = [_moved(one.starts, position) for one, position in zip(chunks, positions, strict=True)]
    ends = [one.ends + position for one, position in zip(chunks, positions, strict=True)]
    return WalChunk(
        chunks[0].metadata_partition,
        np.concatenate([one.offsets for one in chunks]),
        np.concatenate([one.timestamps for one in chunks]),
        np.concatenate([one.data for one in chunks]),
        np.concatenate(starts),
        np.concatenate(ends),
    )


def _moved(starts: Ints, by: int) -> Ints:
    return np.where(starts == NULL, NULL, starts + by)

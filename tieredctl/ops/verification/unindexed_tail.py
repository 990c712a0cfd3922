"""Is the end of an offset index missing?

A broker indexes a batch once more than `index.interval.bytes` follow the last entry, so an index that stops earlier was
cut. There are two exceptions: up to Kafka 3.9 a follower indexes appends, not batches, and may have appended all of the
rest at once; and a restarted broker begins to count again. The time index is the witness: it has an entry for each
entry of the offset index at which timestamps had risen.
"""

from __future__ import annotations

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.ops.verification.index_check import BatchSpans, TimeIndexCheck


class UnindexedTail:
    """Takes a log's batches block by block, and notes those after the last entry that a leader would have indexed."""

    def __init__(self, last_position: int, last_offset: int | None, index_interval_bytes: int) -> None:
        """The log position and offset of the offset index's last entry."""
        self._interval = index_interval_bytes
        self._next_indexed_from = last_position + index_interval_bytes
        self._last_position = last_position
        self.last_offset = -1 if last_offset is None else last_offset
        self._latest = -1
        self._latest_indexed = -1
        self.latest_at: list[int] = []
        """For each batch that has no entry and should: the latest timestamp up to it, inclusive."""
        self.unindexed_bytes = 0
        """From the last entry to where the last batch begins."""

    def feed(self, batches: BatchSpans) -> None:
        latest = np.maximum(np.maximum.accumulate(batches.max_timestamps), self._latest)
        indexed = int(np.searchsorted(batches.positions, self._last_position, side="right"))
        if indexed:
            self._latest_indexed = int(latest[indexed - 1])
        behind = batches.bases > self.last_offset
        positions, latest_behind = batches.positions[behind], latest[behind]
        while (row := int(np.searchsorted(positions, self._next_indexed_from, side="right"))) < len(positions):
            self.latest_at.append(int(latest_behind[row]))
            self._next_indexed_from = int(positions[row]) + self._interval
        self._latest = int(latest[-1])
        self.unindexed_bytes = int(batches.positions[-1]) - self._last_position

    def is_cut(self, witness: TimeIndexCheck | None, *, leader_changed: bool, by_append: bool) -> bool:
        """Whether entries are missing.

        `witness` is the time index, if sound. `leader_changed` says that a leader epoch begins after the last entry, as
        when a broker is restarted; `by_append` that entries were made for appends.
        """
        missed = len(self.latest_at)
        if not missed:
            return False
        testimony = self._testimony(witness.timestamps, witness.offsets) if witness else None
        if testimony is not None:
            return testimony
        return not by_append and not (missed == 1 and leader_changed)

    def _testimony(self, timestamps: Ints, offsets: Ints) -> bool | None:
        """What the time index shows; None where timestamps did not rise enough for it to show anything."""
        if not len(timestamps):
            return None
        latest = int(timestamps[-1])  # has an entry anyhow, made when the segment was closed
        indexed = timestamps[offsets <= self.last_offset]
        latest_indexed = max(self._latest_indexed, int(indexed[-1]) if len(indexed) else -1)
        expected = {timestamp for timestamp in self.latest_at if latest_indexed < timestamp < latest}
        if not expected:
            return None
        found = set(timestamps[(offsets > self.last_offset) & (timestamps < latest)].tolist())
        return expected <= found if len(self.latest_at) == 1 else 2 * len(found) >= len(expected)

"""Do an offset index and a time index describe their log?

Both take the log's sound batches block by block, so that a log of any length needs no more memory than a block.

Is the end of an offset index missing?

A broker indexes a batch once more than `index.interval.bytes` follow the last entry, so an index that stops earlier was
cut. There are two exceptions: up to Kafka 3.9 a follower indexes appends, not batches, and may have appended all of the
rest at once; and a restarted broker begins to count again. The time index is the witness: it has an entry for each
entry of the offset index at which timestamps had risen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from tieredctl.formats.index_columns import OffsetIndexColumns, TimeIndexColumns
from tieredctl.formats.windows import Flags, Ints

OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12


@dataclass(frozen=True, slots=True)
class BatchSpans:
    """Sound batches of a block: where each begins and ends (exclusive) in the log, first and last offsets (inclusive),
    latest timestamps."""

    positions: Ints
    ends: Ints
    bases: Ints
    lasts: Ints
    max_timestamps: Ints

    def at(self, rows: Ints) -> BatchSpans:
        """Some of them."""
        return BatchSpans(*(getattr(self, one.name)[rows] for one in fields(self)))


@dataclass(slots=True)
class Exemptions:
    """What an index is not blamed for, since the log itself is damaged there. All ranges are inclusive."""

    positions: list[tuple[int, int]] = field(default_factory=list)
    """Bytes of the log."""
    offsets: list[tuple[int, int]] = field(default_factory=list)

    def cover_positions(self, positions: Ints) -> Flags:
        return _lie_in(self.positions, positions)

    def cover_offsets(self, offsets: Ints) -> Flags:
        return _lie_in(self.offsets, offsets)


def _lie_in(ranges: list[tuple[int, int]], values: Ints) -> Flags:
    bounds = np.array(sorted(ranges), np.int64).reshape(-1, 2)
    reached = np.maximum.accumulate(bounds[:, 1])
    row = np.searchsorted(bounds[:, 0], values, side="right") - 1
    covered: Flags = (row >= 0) & (values <= np.append(reached, -1)[row])
    return covered


def _rise_between(right: Flags, *columns: Ints) -> Flags:
    """Whether all values of each entry lie between those of the nearest right entries before and after it: all
    that can be checked of one whose own batch is damaged."""
    between = np.ones(len(right), np.bool_)
    limits = np.iinfo(np.int64)
    for values in columns:
        before = np.maximum.accumulate(np.append(limits.min, np.where(right, values, limits.min)))[:-1]
        behind = np.append(np.where(right, values, limits.max), limits.max)
        between &= (before < values) & (values < np.minimum.accumulate(behind[::-1])[::-1][1:])
    return between


@dataclass(frozen=True, slots=True)
class WrongEntries:
    """Entries of an index that do not describe the log, by the first of them.

    `index_position` is its byte in the index, `offset` the offset that it names.
    """

    count: int
    index_position: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class IndexVerdict:
    """What is wrong with an index. Look-ups through the entries in `harmless` are right."""

    altered: WrongEntries | None
    harmless: WrongEntries | None


class OffsetIndexCheck:
    """Each entry names the start of the batch that ends with its offset.

    Up to Kafka 3.9 an entry is made for each append; a follower's may have many batches, and the entry then names the
    start of the first and the last offset of all. Releases before Kafka 2 named the first offset of the batch.
    Look-ups through such entries are right, so they count as harmless.
    """

    def __init__(self, entries: OffsetIndexColumns, base_offset: int, first_entry: int = 0) -> None:
        """`first_entry` is the number that the first of these entries has in the index."""
        self._first_entry = first_entry
        self._positions = entries.positions
        self._offsets = entries.relative_offsets + base_offset
        self._begins = np.zeros(len(self._positions), np.bool_)
        self._bases = np.zeros(len(self._positions), np.int64)
        self._lasts = np.zeros(len(self._positions), np.int64)
        self._ends = np.full(len(self._positions), -1, np.int64)
        """The end of the batch whose last offset the entry names."""

    @property
    def last_position(self) -> int:
        """Where in the log the last entry points; the beginning where there is none."""
        return int(self._positions[-1]) if len(self._positions) else 0

    @property
    def last_offset(self) -> int | None:
        """The offset of the last entry."""
        return int(self._offsets[-1]) if len(self._offsets) else None

    def feed(self, batches: BatchSpans) -> None:
        """A block's batches."""
        near = np.flatnonzero((self._positions >= batches.positions[0]) & (self._positions < batches.ends[-1]))
        rows = np.searchsorted(batches.positions, self._positions[near], side="right") - 1
        begin = batches.positions[rows] == self._positions[near]
        beginning, rows = near[begin], rows[begin]
        self._begins[beginning] = True
        self._bases[beginning], self._lasts[beginning] = batches.bases[rows], batches.lasts[rows]
        order = np.argsort(batches.lasts, kind="stable")
        lasts = batches.lasts[order]
        near = np.flatnonzero((self._offsets >= lasts[0]) & (self._offsets <= lasts[-1]))
        rows = np.searchsorted(lasts, self._offsets[near])
        named = lasts[rows] == self._offsets[near]
        self._ends[near[named]] = batches.ends[order[rows[named]]]

    def finish(self, exempt: Exemptions) -> IndexVerdict:
        """What is wrong, now that all batches were fed."""
        positions, offsets = self._positions, self._offsets
        # The first batch never gets an entry: there are no bytes before it.
        begins = self._begins & (positions > 0)
        right = begins & (offsets == self._lasts)
        before = np.maximum.accumulate(np.append(-1, np.where(right, positions, -1)))[:-1]
        right &= positions > before
        beyond = np.iinfo(np.int64).max
        behind = np.minimum.accumulate(np.append(np.where(right, positions, beyond), beyond)[::-1])[::-1][1:]
        ends_append = (positions < self._ends) & (self._ends <= behind)
        harmless = ~right & begins & (positions > before) & (ends_append | (offsets == self._bases))
        judged = ~exempt.cover_positions(positions) & ~exempt.cover_offsets(offsets)
        judged |= ~_rise_between(right, positions, offsets)
        return IndexVerdict(
            self._entries(~right & ~harmless & judged),
            self._entries(harmless & judged),
        )

    def _entries(self, chosen: Flags) -> WrongEntries | None:
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return None
        row = int(rows[0])
        position, offset = int(self._positions[row]), int(self._offsets[row])
        if not self._begins[row]:
            reason = f"no batch begins at byte {position} of the log"
        else:
            reason = f"the batch at byte {position} of the log ends with offset {self._lasts[row]}"
        return WrongEntries(len(rows), (self._first_entry + row) * OFFSET_ENTRY_BYTES, offset, reason)


class TimeIndexCheck:
    """Each entry names an offset in a batch whose latest timestamp is the entry's.

    It is the batch's last offset; before Kafka 3.8 it could be another, through which look-ups are right too.
    """

    def __init__(self, entries: TimeIndexColumns, base_offset: int, first_entry: int = 0) -> None:
        """`first_entry` is the number that the first of these entries has in the index."""
        self._first_entry = first_entry
        self.timestamps = entries.timestamps
        self.offsets = entries.relative_offsets + base_offset
        self._right = np.zeros(len(self.offsets), np.bool_)
        self._last = np.zeros(len(self.offsets), np.bool_)

    @property
    def last_timestamp(self) -> int | None:
        return int(self.timestamps[-1]) if len(self.timestamps) else None

    @property
    def last_offset(self) -> int | None:
        """The offset of the last entry."""
        return int(self.offsets[-1]) if len(self.offsets) else None

    def feed(self, batches: BatchSpans) -> None:
        """A block's batches by rising base offset; one with an altered base offset may lie inside another."""
        reached = np.maximum.accumulate(batches.lasts)
        near = np.flatnonzero((self.offsets >= batches.bases[0]) & (self.offsets <= reached[-1]))
        offsets = self.offsets[near]
        rows = np.searchsorted(reached, offsets)
        right = (batches.bases[rows] <= offsets) & (batches.max_timestamps[rows] == self.timestamps[near])
        self._right[near] |= right
        self._last[near] |= right & (batches.lasts[rows] == offsets)

    def finish(self, exempt: Exemptions) -> IndexVerdict:
        """What is wrong, now that all batches were fed."""
        before = np.maximum.accumulate(np.append(-1, np.where(self._right, self.timestamps, -1)))[:-1]
        right = self._right & (self.timestamps > before)
        judged = ~exempt.cover_offsets(self.offsets) | ~_rise_between(right, self.timestamps, self.offsets)
        return IndexVerdict(
            self._entries(~right & judged, "no batch there has {} as its latest timestamp"),
            self._entries(right & ~self._last & judged, "the batch with timestamp {} does not end there"),
        )

    def _entries(self, chosen: Flags, reason: str) -> WrongEntries | None:
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return None
        row = int(rows[0])
        why = reason.format(self.timestamps[row])
        return WrongEntries(len(rows), (self._first_entry + row) * TIME_ENTRY_BYTES, int(self.offsets[row]), why)


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
        present = set(timestamps[(offsets > self.last_offset) & (timestamps < latest)].tolist())
        return expected <= present if len(self.latest_at) == 1 else 2 * len(present) >= len(expected)

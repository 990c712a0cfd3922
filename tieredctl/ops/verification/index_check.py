"""Do an offset index and a time index describe their log?

Both take the log's sound batches block by block, so that a log of any length needs no more memory than a block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tieredctl.formats.index_columns import OffsetIndexColumns, TimeIndexColumns
from tieredctl.formats.windows import Flags, Ints

OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12


@dataclass(frozen=True, slots=True)
class BatchSpans:
    """Sound batches of a block: byte positions in the log, first and last offsets (inclusive), latest timestamps."""

    positions: Ints
    bases: Ints
    lasts: Ints
    max_timestamps: Ints


@dataclass(slots=True)
class Exemptions:
    """What cannot be held against an index, since the log itself is damaged there."""

    positions: list[tuple[int, int]] = field(default_factory=list)
    """Byte ranges of the log, the second exclusive."""
    offsets: list[tuple[int, int]] = field(default_factory=list)
    """Offset ranges, both inclusive."""

    def cover(self, position: int | None, offset: int) -> bool:
        if position is not None and any(start <= position < end for start, end in self.positions):
            return True
        return any(first <= offset <= last for first, last in self.offsets)


@dataclass(frozen=True, slots=True)
class WrongEntry:
    """An entry that does not describe the log. `index_position` is its byte in the index; `log_position` the byte in
    the log that it names, if it names one. `harmless` says that every look-up through it still finds its record."""

    index_position: int
    offset: int
    log_position: int | None
    reason: str
    harmless: bool = False


class OffsetIndexCheck:
    """Each entry names the batch that holds its offset.

    Up to Kafka 3.9 an entry is made for each append, of which a follower's may have many batches: the entry then
    names the first batch and the last offset. Such an entry is marked as harmless, for the caller to weigh.
    """

    def __init__(self, entries: OffsetIndexColumns, base_offset: int) -> None:
        self._positions = entries.positions
        self._offsets = entries.relative_offsets + base_offset
        self._seen = np.zeros(len(self._positions), np.bool_)
        self._wrong: list[WrongEntry] = []

    @property
    def last_position(self) -> int:
        """Where in the log the last entry points; the beginning where there is none."""
        return int(self._positions[-1]) if len(self._positions) else 0

    @property
    def last_offset(self) -> int | None:
        """The offset of the last entry."""
        return int(self._offsets[-1]) if len(self._offsets) else None

    def feed(self, batches: BatchSpans, end: int) -> None:
        """A block's batches, of which the last ends at byte `end` of the log."""
        inside = np.flatnonzero((self._positions >= batches.positions[0]) & (self._positions < end))
        self._seen[inside] = True
        rows = np.searchsorted(batches.positions, self._positions[inside])
        rows = np.minimum(rows, len(batches.positions) - 1)
        begins = batches.positions[rows] == self._positions[inside]
        offsets = self._offsets[inside]
        held: Flags = begins & (batches.bases[rows] <= offsets) & (offsets <= batches.lasts[rows])
        for entry, row, begins_there in zip(inside[~held], rows[~held], begins[~held], strict=True):
            harmless = bool(begins_there) and self._ends_an_append(batches, int(entry), int(row))
            reason = "does not hold its offset" if begins_there else "is inside a batch"
            self._wrong.append(self._entry(int(entry), f"byte {self._positions[entry]} of the log {reason}", harmless))

    def finish(self) -> list[WrongEntry]:
        """Every entry that is wrong, those that point beyond the log included."""
        beyond = np.flatnonzero(~self._seen)
        return self._wrong + [self._entry(int(entry), "it points at no batch of the log", False) for entry in beyond]

    def _ends_an_append(self, batches: BatchSpans, entry: int, row: int) -> bool:
        offset = self._offsets[entry]
        if offset <= batches.lasts[row]:
            return False
        following = self._offsets[entry + 1] if entry + 1 < len(self._offsets) else None
        if following is not None and offset >= following:
            return False
        ending = int(np.searchsorted(batches.lasts, offset))
        return ending == len(batches.lasts) or batches.lasts[ending] == offset

    def _entry(self, entry: int, reason: str, harmless: bool) -> WrongEntry:
        at, position = entry * OFFSET_ENTRY_BYTES, int(self._positions[entry])
        return WrongEntry(at, int(self._offsets[entry]), position, reason, harmless)


class TimeIndexCheck:
    """Each entry names an offset in a batch whose latest timestamp is the entry's."""

    def __init__(self, entries: TimeIndexColumns, base_offset: int) -> None:
        self._timestamps = entries.timestamps
        self._offsets = entries.relative_offsets + base_offset
        self._right = np.zeros(len(self._offsets), np.bool_)

    @property
    def last_timestamp(self) -> int | None:
        return int(self._timestamps[-1]) if len(self._timestamps) else None

    def feed(self, batches: BatchSpans) -> None:
        near = np.flatnonzero((self._offsets >= batches.bases[0]) & (self._offsets <= batches.lasts[-1]))
        offsets = self._offsets[near]
        rows = np.searchsorted(batches.lasts, offsets)
        held = batches.bases[rows] <= offsets
        self._right[near] |= held & (batches.max_timestamps[rows] == self._timestamps[near])

    def finish(self) -> list[WrongEntry]:
        reason = "no batch there has this as its latest timestamp"
        return [
            WrongEntry(int(entry) * TIME_ENTRY_BYTES, int(self._offsets[entry]), None, reason)
            for entry in np.flatnonzero(~self._right)
        ]

"""Is a segment's log sound, and is it what the metadata says?

Do base offsets rise within a segment's claim, and if not, which batch is to blame?

A batch's base offset lies outside its CRC, so only its neighbours and the metadata show that it was altered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tieredctl.formats.batch_columns import AsColumns, HeaderColumns, joined_headers
from tieredctl.formats.log_scan import Damage, LogBlock, scan_log
from tieredctl.formats.record_batches import LOG_OVERHEAD
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.verification.index_check import (
    BatchSpans,
    Exemptions,
    OffsetIndexCheck,
    TimeIndexCheck,
    UnindexedTail,
)
from tieredctl.ops.verification.small_parts import ProducersCheck
from tieredctl.ops.verification.transactions import AbortedTransactions

NO_TIMESTAMP = -1
_EXAMPLES = 8
_BATCHES_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class CorruptBatch:
    """An unusable stretch of the log, and the offsets (inclusive) at risk with it."""

    position: int
    reason: str
    first_offset: int
    last_offset: int
    stored: tuple[int, int] | None = None
    """The bytes of the object that are to blame, from the first up to, not including, the second, where the layout
    stores the log otherwise than the broker wrote it."""


@dataclass(slots=True)
class LogFacts:
    """The result of reading a whole log."""

    batches: int = 0
    records: int = 0
    last_offset: int = -1
    """The last offset (inclusive) that a sound batch holds."""
    first_hole: tuple[int, int] | None = None
    """The first offsets (inclusive) inside the claim that no batch holds, in a log without damage."""
    max_timestamp: int = NO_TIMESTAMP
    latest_beyond_claim: int | None = None
    """Byte position of the first batch later than the metadata claims."""
    corrupt: list[CorruptBatch] = field(default_factory=list)
    torn_at: int | None = None
    """The start of an incomplete last batch."""
    misplaced: list[Misplaced] = field(default_factory=list)
    wrong_epochs: list[tuple[int, int, int]] = field(default_factory=list)
    """(byte position, offset, leader epoch) of the first batches of each block whose epoch contradicts the metadata."""
    exemptions: Exemptions = field(default_factory=Exemptions)


class LogCheck:
    """Reads a log once, from its first byte or from another to the last, and lets the indexes watch."""

    def __init__(
        self,
        metadata: RemoteLogSegmentMetadata,
        offset_index: OffsetIndexCheck | None = None,
        time_index: TimeIndexCheck | None = None,
        tail: UnindexedTail | None = None,
        *,
        producers: ProducersCheck | None = None,
        first_position: int = 0,
        within: tuple[int, int] | None = None,
    ) -> None:
        """`first_position` is the position in the log of the bytes that `run` is given, `within` the offsets
        (inclusive) in them where these are not all of the segment's."""
        self._first_position = first_position
        self.facts = LogFacts()
        self.transactions = AbortedTransactions()
        self._metadata = metadata
        self._offset_index, self._time_index, self._tail = offset_index, time_index, tail
        self._producers = producers
        self._order = OffsetOrder(metadata.start_offset, metadata.end_offset)
        self._lowest_offset, self._highest_offset = within or (metadata.start_offset, metadata.end_offset)
        self._epochs = np.array([epoch for epoch, _ in metadata.segment_leader_epochs], np.int64)
        self._epoch_starts = np.array([offset for _, offset in metadata.segment_leader_epochs], np.int64)
        self._damages: list[tuple[Damage, int]] = []
        """Those without the offsets at risk so far, with how many gathered batches are before each."""
        self._positions: list[Ints] = []
        self._headers: list[HeaderColumns] = []
        self._gathered = 0

    def run(self, chunks: Iterable[bytes], size: int) -> LogFacts:
        """`size` bytes of a log, in pieces."""
        for part in scan_log(chunks, size, AsColumns(), self._metadata.start_offset):
            if isinstance(part, Damage):
                self._damaged(part)
            else:
                self._gather(part)
            del part  # before the next is read, so that its memory can be reused
        self._check_gathered()
        self._misplaced(self._order.finish())
        self._settle_damages(np.array([self._highest_offset + 1]), np.zeros(0, np.int64))
        self._note_unreadable_markers()
        self._exempt_missing_end(self._first_position + size)
        if self.facts.last_offset < self._highest_offset:
            self._note_hole(self.facts.last_offset + 1, self._highest_offset)
        return self.facts

    def _gather(self, block: LogBlock[HeaderColumns]) -> None:
        """Keeps the headers of sound batches until there are enough to check together, in few calls of numpy."""
        self.transactions.feed(block)
        if self._producers:
            self._producers.feed(block)
        positions = np.asarray(block.positions, np.int64)
        self._positions.append(positions + (block.file_position + self._first_position))
        self._headers.append(block.headers)
        self._gathered += len(positions)
        if self._gathered >= _BATCHES_AT_ONCE:
            self._check_gathered()

    def _check_gathered(self) -> None:
        if self._gathered:
            self._check(np.concatenate(self._positions), joined_headers(self._headers))
            self._positions, self._headers, self._gathered = [], [], 0

    def _check(self, positions: Ints, headers: HeaderColumns) -> None:
        """Sound batches that follow one another, with damage between them or not."""
        facts = self.facts
        bases = headers["baseOffset"].astype(np.int64)
        lasts = bases + headers["lastOffsetDelta"]
        ends = positions + (headers["batchLength"].astype(np.int64) + LOG_OVERHEAD)
        spans = BatchSpans(positions, ends, bases, lasts, headers["maxTimestamp"].astype(np.int64))
        self._settle_damages(bases, lasts)
        self._misplaced(self._order.feed(positions, bases, lasts))
        self._check_epochs(spans, headers["partitionLeaderEpoch"].astype(np.int64))
        self._check_timestamps(spans)
        self._look_for_hole(spans)
        if self._offset_index:
            self._offset_index.feed(spans)
        if self._time_index:
            self._time_index.feed(_by_offset(spans))
        if self._tail:
            self._tail.feed(spans)
        facts.batches += len(positions)
        facts.records += int(headers["recordsCount"].sum(dtype=np.int64))
        facts.last_offset = int(lasts[-1])

    def _damaged(self, damage: Damage) -> None:
        if self._producers:
            self._producers.forget()
        position = damage.position + self._first_position
        self.facts.exemptions.positions.append((position, max(damage.end + self._first_position - 1, position)))
        if damage.torn:
            self.facts.torn_at = position
        self._damages.append((damage, self._gathered))

    def _settle_damages(self, bases: Ints, lasts: Ints) -> None:
        """Gives the damages between some batches, and between these and those before, the offsets at risk."""
        rows = np.array([row for _, row in self._damages], np.int64)
        settled = rows[: np.searchsorted(rows, len(bases))]
        firsts = np.maximum(np.append(self.facts.last_offset, lasts)[settled] + 1, self._lowest_offset)
        firsts = np.minimum(firsts, self._highest_offset)
        ends = np.maximum(firsts, np.minimum(bases[settled] - 1, self._highest_offset))
        for (damage, _), first, last in zip(self._damages, firsts.tolist(), ends.tolist(), strict=False):
            self.facts.exemptions.offsets.append((first, last))
            if not damage.torn:
                self.facts.corrupt.append(
                    CorruptBatch(damage.position + self._first_position, damage.reason, first, last)
                )
        self._damages = [(damage, 0) for damage, _ in self._damages[len(settled) :]]

    def _misplaced(self, batches: list[Misplaced]) -> None:
        for batch in batches:
            self.facts.misplaced.append(batch)
            last = self._metadata.end_offset if batch.last_expected is None else batch.last_expected
            self.facts.exemptions.positions.append((batch.position, batch.position))
            self.facts.exemptions.offsets += [(batch.first_expected, last), (batch.base_offset, batch.last_offset)]

    def _check_epochs(self, spans: BatchSpans, epochs: Ints) -> None:
        rows = np.searchsorted(self._epoch_starts, spans.bases, side="right") - 1
        claimed = self._epochs[np.maximum(rows, 0)]
        inside = (spans.bases >= self._metadata.start_offset) & (spans.lasts <= self._metadata.end_offset)
        for row in np.flatnonzero(inside & (epochs != claimed))[:_EXAMPLES].tolist():
            self.facts.wrong_epochs.append((int(spans.positions[row]), int(spans.bases[row]), int(epochs[row])))

    def _check_timestamps(self, spans: BatchSpans) -> None:
        latest = int(spans.max_timestamps.max())
        self.facts.max_timestamp = max(self.facts.max_timestamp, latest)
        if latest > self._metadata.max_timestamp_ms and self.facts.latest_beyond_claim is None:
            late = np.flatnonzero(spans.max_timestamps > self._metadata.max_timestamp_ms)
            self.facts.latest_beyond_claim = int(spans.positions[late[0]])

    def _note_unreadable_markers(self) -> None:
        for marker in self.transactions.unreadable:
            position = marker.position + self._first_position
            self.facts.corrupt.append(CorruptBatch(position, marker.reason, marker.offset, marker.offset))
            self.facts.exemptions.positions.append((position, position))
            self.facts.exemptions.offsets.append((marker.offset, marker.offset))

    def _exempt_missing_end(self, end: int) -> None:
        metadata = self._metadata
        if end < metadata.segment_size_in_bytes and self._highest_offset == metadata.end_offset:
            self.facts.exemptions.positions.append((end, metadata.segment_size_in_bytes))
            self.facts.exemptions.offsets.append((self.facts.last_offset + 1, metadata.end_offset))

    def _look_for_hole(self, spans: BatchSpans) -> None:
        expected = np.append(max(self.facts.last_offset + 1, self._lowest_offset), spans.lasts[:-1] + 1)
        behind_hole = np.flatnonzero(spans.bases > expected)
        if len(behind_hole):
            row = behind_hole[0]
            self._note_hole(int(expected[row]), int(spans.bases[row]) - 1)

    def _note_hole(self, first: int, last: int) -> None:
        if self.facts.first_hole is None:
            self.facts.first_hole = (first, last)


def _by_offset(spans: BatchSpans) -> BatchSpans:
    """The batches with offsets rising, which they always do but where one was altered."""
    if (spans.bases[1:] > spans.lasts[:-1]).all():
        return spans
    order = np.argsort(spans.bases, kind="stable")
    return spans.at(order)


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

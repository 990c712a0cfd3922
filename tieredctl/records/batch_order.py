"""Which of a segment's sound batches are where they belong, and which offsets are lost with the others.

A batch's base offset and leader epoch lie outside its CRC: only its neighbours and the metadata show that they were
altered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tieredctl.formats.log_scan import Damage
from tieredctl.formats.record_batches import LOG_OVERHEAD, MAGIC
from tieredctl.formats.windows import Flags
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.remote.log_bytes import LogBytes
from tieredctl.ops.verification.log_check import Misplaced, OffsetOrder
from tieredctl.ports.layout import Part
from tieredctl.records.lost_records import Loss, SegmentLosses
from tieredctl.records.served_spans import ServedSpan
from tieredctl.records.sound_batches import SoundBatches

_HELD_BACK = 2
"""How many batches wait until what follows them is known (`OffsetOrder`)."""


class _Bad(NamedTuple):
    """A stretch of the log, up to, not including, `end`, of which nothing is returned."""

    code: FindingCode
    position: int
    end: int
    reason: str


class BatchOrder:
    """Takes what is found in a log, in its order; gives the batches that are right, and what is lost between them."""

    def __init__(self, span: ServedSpan, losses: SegmentLosses, log: LogBytes) -> None:
        self._span = span
        self._metadata = span.segment
        self._losses = losses
        self._log = log
        self._epochs = np.array([epoch for epoch, _ in span.segment.segment_leader_epochs], np.int64)
        self._epoch_starts = np.array([offset for _, offset in span.segment.segment_leader_epochs], np.int64)
        self.restart()

    def restart(self) -> None:
        """Forgets all."""
        self.reached = self._span.first - 1
        """The last offset that is accounted for."""
        self._order = OffsetOrder(self._metadata.start_offset, self._metadata.end_offset)
        self._queue: deque[SoundBatches | Damage] = deque()
        self._held = 0
        self._misplaced: dict[int, Misplaced] = {}
        self._pending: list[_Bad] = []
        self._all_bad: list[tuple[int, int]] = []

    @property
    def is_damaged(self) -> bool:
        """Whether what was found last is damage."""
        return bool(self._pending)

    def is_damaged_at(self, position: int) -> bool:
        """Whether a byte of the log lies in what is damaged or out of place."""
        return any(start <= position < end for start, end in self._all_bad)

    def take(self, part: SoundBatches | Damage) -> Iterator[SoundBatches | Loss]:
        """What comes next; the last two batches are held back."""
        self._queue.append(part)
        if isinstance(part, SoundBatches) and len(part):
            self._held += len(part)
            self._note(self._order.feed(part.file_positions, part.first_offsets, part.last_offsets))
            yield from self._release(max(self._held - _HELD_BACK, 0))

    def finish(self) -> Iterator[SoundBatches | Loss]:
        """What was held back."""
        self._note(self._order.finish())
        yield from self._release(self._held)

    def end_of_log(self, reached: int, size: int, *, is_longer: bool) -> Iterator[Loss]:
        """What is lost at the end of a log that should have `size` bytes and was read up to `reached`; `is_longer` says
        that it goes on after them."""
        if reached < size:
            reason = f"the log ends at byte {reached}, but has {size} bytes by its metadata"
            self._pending.insert(0, _Bad(FindingCode.SIZE_MISMATCH, reached, size, reason))
        elif is_longer:
            reason = f"the log goes on after the {size} bytes that it has by its metadata"
            self._pending.insert(0, _Bad(FindingCode.SIZE_MISMATCH, size, size, reason))
        elif not self._pending and self.reached < self._span.last:
            offsets = (self.reached + 1, self._span.last)
            reason = f"no batch has offsets {offsets[0]} to {offsets[1]}"
            # Once compaction may have removed the end of a closed segment, but never all of it, nor of an active one.
            is_lost = self._span.is_on_disk and (self._span.is_active or not size)
            code = FindingCode.OFFSET_GAP if is_lost else FindingCode.OFFSET_SHORTFALL
            yield self._losses.loss(code, Part.LOG, reason, offsets=offsets if is_lost else None)
        yield from self._settled(self._span.last + 1)

    def _note(self, misplaced: list[Misplaced]) -> None:
        self._misplaced |= {one.position: one for one in misplaced}

    def _release(self, count: int) -> Iterator[SoundBatches | Loss]:
        """The next batches, and the damage between them."""
        while self._queue:
            part = self._queue[0]
            if isinstance(part, Damage):
                code = FindingCode.UNREADABLE if part.is_too_large else FindingCode.BATCH_CORRUPT
                self._bad(_Bad(code, part.position, part.end, part.reason))
                self._queue.popleft()
                continue
            some = min(count, len(part))
            if some:
                yield from self._released(part if some == len(part) else part.at(np.arange(some)))
                self._held -= some
                count -= some
            if some < len(part):
                self._queue[0] = part.at(np.arange(some, len(part)))
                return
            self._queue.popleft()

    def _released(self, batches: SoundBatches) -> Iterator[SoundBatches | Loss]:
        wrong_epochs = self._wrong_epochs(batches)
        if not self._misplaced and not self._pending and not wrong_epochs.any():
            self.reached = max(self.reached, int(batches.last_offsets[-1]))
            yield batches
            return
        positions, first = batches.file_positions.tolist(), 0
        for row, position in enumerate(positions):
            misplaced = self._misplaced.pop(position, None)
            if misplaced is None and not wrong_epochs[row]:
                continue
            yield from self._right(batches, first, row)
            first = row + 1
            self._bad(self._why(batches, row, misplaced))
        yield from self._right(batches, first, len(positions))

    def _right(self, batches: SoundBatches, first: int, end: int) -> Iterator[SoundBatches | Loss]:
        if first < end:
            some = batches.at(np.arange(first, end))
            yield from self._settled(int(some.first_offsets[0]))
            self.reached = max(self.reached, int(some.last_offsets[-1]))
            yield some

    def _why(self, batches: SoundBatches, row: int, misplaced: Misplaced | None) -> _Bad:
        position = int(batches.file_positions[row])
        end = position + int(batches.headers["batchLength"][row]) + LOG_OVERHEAD
        base, last = int(batches.first_offsets[row]), int(batches.last_offsets[row])
        if misplaced is None:
            epoch = int(batches.headers["partitionLeaderEpoch"][row])
            reason = f"the batch of offset {base} has leader epoch {epoch}, which the metadata does not have there"
            return _Bad(FindingCode.EPOCH_MISMATCH, position, end, reason)
        code = FindingCode.RECORDS_OUTSIDE_SEGMENT if misplaced.outside else FindingCode.OFFSETS_OUT_OF_ORDER
        return _Bad(code, position, end, f"a batch has offsets {base} to {last}, where they cannot be")

    def _wrong_epochs(self, batches: SoundBatches) -> Flags:
        rows = np.searchsorted(self._epoch_starts, batches.first_offsets, side="right") - 1
        claimed = self._epochs[np.maximum(rows, 0)]
        wrong: Flags = (batches.headers["partitionLeaderEpoch"] != claimed) & (batches.headers["magic"] == MAGIC)
        return wrong

    def _bad(self, bad: _Bad) -> None:
        self._all_bad.append((bad.position, bad.end))
        if self.reached < self._span.last:
            self._pending.append(bad)

    def _settled(self, following: int) -> Iterator[Loss]:
        """What is bad before a batch with this first offset: the first of it costs the offsets up to there."""
        if self._pending and following > self._span.first:
            offsets: tuple[int, int] | None = (self.reached + 1, min(following - 1, self._span.last))
            for bad in self._pending:
                yield self._loss(bad, offsets)
                offsets = None
        self._pending.clear()

    def _loss(self, bad: _Bad, offsets: tuple[int, int] | None) -> Loss:
        for damage in self._log.damages:
            if damage.original[0] < bad.end and bad.position < damage.original[1]:
                stored = [damage.stored[0], damage.stored[1] - 1]
                return self._losses.loss(
                    *(bad.code, Part.LOG, damage.reason), position=bad.position, offsets=offsets, storedBytes=stored
                )
        return self._losses.loss(bad.code, Part.LOG, bad.reason, position=bad.position, offsets=offsets)

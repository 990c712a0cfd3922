"""What a consumer with `read_committed` gets: nothing of aborted transactions, nor anything from the first one on whose
end is not known.

A transaction's own marker decides, which a CRC protects: its batches wait for it. Where so much waits that memory would
grow, and at the end of what is asked for, the log is read on for the markers alone. Transaction indexes, which have no
CRC, are asked only where damage may have hidden a marker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.errors import DecodeError
from tieredctl.formats.record_batches import Attributes
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.layout import Part
from tieredctl.records.lost_records import Loss, SegmentLosses
from tieredctl.records.sound_batches import SoundBatches
from tieredctl.records.transaction_indexes import TransactionEnd, TransactionIndexes

MOST_WAITING_BYTES = 64 << 20
_TRANSACTIONAL, _CONTROL = int(Attributes.TRANSACTIONAL), int(Attributes.CONTROL)
_MARKER = _TRANSACTIONAL | _CONTROL
_RETURNED, _UNDECIDED, _LEFT_OUT = range(3)


@dataclass(slots=True)
class _Waiting:
    """Batches of one segment, of which those up to `done` were handed on."""

    batches: SoundBatches
    number: int
    """The number of their span."""
    fates: NDArray[np.int8]
    losses: SegmentLosses
    done: int = 0

    def undecided(self) -> int:
        """The first row that is; the count of rows where none is."""
        rows = np.flatnonzero(self.fates[self.done :] == _UNDECIDED)
        return self.done + int(rows[0]) if len(rows) else len(self.fates)


LogAfter = Callable[[int], Iterator[tuple[SoundBatches | Loss, int, SegmentLosses | None]]]
"""What follows an offset in remote storage, with the numbers of spans; what no segment holds before one has no
SegmentLosses."""


class _Marker(NamedTuple):
    offset: int
    is_abort: bool


@dataclass(slots=True)
class CommittedBatches:
    """Takes a partition's sound batches in order, and hands on those that are committed once that is known."""

    indexes: TransactionIndexes
    log_after: LogAfter
    within: tuple[int, int]
    """The offsets that are asked for (inclusive)."""
    is_finished: bool = False
    """Whether nothing more is handed on, as a transaction that has no end holds it up."""
    _queue: deque[_Waiting | Loss] = field(default_factory=deque)
    _open: dict[int, list[tuple[_Waiting, int]]] = field(default_factory=dict)
    """By producer id, the batches of its transaction."""
    _foreseen: dict[int, _Marker] = field(default_factory=dict)
    """By producer id, the marker that was met ahead of what was taken."""
    _waiting_bytes: int = 0

    def take(
        self, batches: SoundBatches, number: int, losses: SegmentLosses
    ) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """The next batches of the span with this number; what is handed on has the number of its own."""
        attributes, offsets = batches.headers["attributes"], batches.first_offsets
        concerned = np.flatnonzero(attributes & _MARKER)
        if not len(concerned) and not self._queue:
            yield batches, number
            return
        fates = np.zeros(len(batches), np.int8)
        waiting = _Waiting(batches, number, fates, losses)
        self._queue.append(waiting)
        self._waiting_bytes += len(batches.buffer)
        for row in concerned.tolist():
            producer = int(batches.headers["producerId"][row])
            if not int(attributes[row]) & _CONTROL:
                foreseen = self._foreseen.get(producer)
                if foreseen is None or int(offsets[row]) > foreseen.offset:
                    fates[row] = _UNDECIDED
                    self._open.setdefault(producer, []).append((waiting, row))
                else:
                    fates[row] = _LEFT_OUT if foreseen.is_abort else _RETURNED
                continue
            fates[row] = _LEFT_OUT
            if int(attributes[row]) & _TRANSACTIONAL:
                self._foreseen.pop(producer, None)
                if producer in self._open:
                    yield from self._end(batches, row, producer, number, losses)
        yield from self._decided()
        if self._waiting_bytes > MOST_WAITING_BYTES and self._queue:
            yield from self._look_ahead(int(batches.last_offsets[-1]))
            yield from self._decided()
            self.is_finished = bool(self._queue)

    def lost(self, loss: Loss, number: int, *, is_before: bool) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """What is lost in the span of this number, or before it in no segment. Among offsets that are missing a marker
        may be: what waits is decided by the indexes."""
        if loss.offsets is not None:
            yield from self._ask_indexes(number, loss.offsets[1], is_before=is_before)
            yield from self._decided()
        if self._queue:
            self._queue.append(loss)
        else:
            yield loss

    def finish(self) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """At the end of what is asked for: decides what waits, by what follows."""
        if not self.is_finished:
            yield from self._look_ahead(self.within[1])
            yield from self._decided()

    def open_since(self) -> int | None:
        """The first offset of which nothing is returned, as a transaction that begins there has no end; None where
        there is none. To be asked at the end."""
        for one in self._queue:
            if isinstance(one, _Waiting):
                return int(one.batches.first_offsets[one.undecided()])
        return None

    def _look_ahead(self, offset: int) -> Iterator[Loss]:
        """Decides what waits by the markers after an offset; afterwards, what still waits has no end there."""
        if not self._open:
            return
        for part, number, losses in self.log_after(offset):
            if isinstance(part, Loss):
                if part.offsets is not None:
                    yield from self._ask_indexes(number, part.offsets[1], is_before=losses is None)
            else:
                assert losses is not None
                markers = (part.headers["attributes"] & _MARKER) == _MARKER
                for row in np.flatnonzero(markers).tolist():
                    producer = int(part.headers["producerId"][row])
                    if producer in self._open:
                        is_abort = yield from self._end(part, row, producer, number, losses)
                        if is_abort is not None:
                            self._foreseen[producer] = _Marker(int(part.first_offsets[row]), is_abort)
            if not self._open:
                return

    def _end(
        self, batches: SoundBatches, row: int, producer: int, number: int, losses: SegmentLosses
    ) -> Generator[Loss, None, bool | None]:
        """Ends a producer's transaction as its marker says: whether it was aborted, None where that is malformed."""
        try:
            is_abort = batches.is_abort_marker(row)
        except DecodeError as error:
            position = int(batches.file_positions[row])
            yield losses.loss(FindingCode.BATCH_CORRUPT, Part.LOG, error.reason, position=position)
            yield from self._resolve(producer, number, int(batches.last_offsets[row]), is_before=False)
            return None
        for waiting, waiting_row in self._open.pop(producer):
            waiting.fates[waiting_row] = _LEFT_OUT if is_abort else _RETURNED
        return is_abort

    def _ask_indexes(self, number: int, lost_until: int, *, is_before: bool) -> Iterator[Loss]:
        for producer in list(self._open):
            yield from self._resolve(producer, number, lost_until, is_before=is_before)

    def _resolve(self, producer: int, number: int, lost_until: int, *, is_before: bool) -> Iterator[Loss]:
        """Decides each batch of a producer's transaction by the indexes from a span on."""
        left: list[tuple[_Waiting, int]] = []
        for waiting, row in self._open.pop(producer):
            base, last = int(waiting.batches.first_offsets[row]), int(waiting.batches.last_offsets[row])
            end = yield from self.indexes.end_of(producer, base, number, lost_until, is_before=is_before)
            if end is TransactionEnd.OPEN:
                left.append((waiting, row))
            elif end is TransactionEnd.UNKNOWN:
                waiting.fates[row] = _LEFT_OUT
                asked = max(base, self.within[0]), min(last, self.within[1])
                if asked[0] <= asked[1]:
                    yield waiting.losses.loss(
                        FindingCode.UNREADABLE,
                        Part.TRANSACTION_INDEX,
                        f"whether the transaction of producer {producer} was aborted is not known",
                        offsets=asked,
                    )
            else:
                waiting.fates[row] = _LEFT_OUT if end is TransactionEnd.ABORTED else _RETURNED
        if left:
            self._open[producer] = left

    def _decided(self) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """What nothing holds up any more."""
        while self._queue:
            head = self._queue[0]
            if isinstance(head, Loss):
                self._queue.popleft()
                yield head
                continue
            until = head.undecided()
            if until > head.done:
                kept = np.flatnonzero(head.fates[head.done : until] == _RETURNED) + head.done
                if len(kept):
                    yield head.batches.at(kept), head.number
                head.done = until
            if until < len(head.fates):
                return
            self._queue.popleft()
            self._waiting_bytes -= len(head.batches.buffer)

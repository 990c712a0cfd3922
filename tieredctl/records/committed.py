"""What a consumer with `read_committed` gets: nothing of aborted transactions, nor anything from the first one on whose
end is not known.

A transaction's own marker decides, which a CRC protects: its batches wait for it. Transaction indexes, which have none,
are asked where so much waits that memory would grow, and where damage may have hidden a marker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tieredctl.errors import DecodeError
from tieredctl.formats.record_batches import Attributes, BatchHeader, ControlType, read_control_type, read_records
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.layout import Part
from tieredctl.records.lost_records import Loss, SegmentLosses
from tieredctl.records.sound_batches import SoundBatches
from tieredctl.records.transaction_indexes import TransactionEnd, TransactionIndexes

MOST_WAITING_BYTES = 64 << 20
_TRANSACTIONAL, _CONTROL = int(Attributes.TRANSACTIONAL), int(Attributes.CONTROL)
_RETURNED, _UNDECIDED, _LEFT_OUT = range(3)


@dataclass(slots=True)
class _Waiting:
    """Batches of one segment, of which those up to `done` were handed on."""

    batches: SoundBatches
    number: int
    """Of the span that they are of."""
    fates: NDArray[np.int8]
    losses: SegmentLosses
    done: int = 0

    def undecided(self) -> int:
        """The first row that is; the count of rows where none is."""
        rows = np.flatnonzero(self.fates[self.done :] == _UNDECIDED)
        return self.done + int(rows[0]) if len(rows) else len(self.fates)


@dataclass(slots=True)
class CommittedBatches:
    """Takes a partition's sound batches in order, and hands on those that are committed once that is known."""

    indexes: TransactionIndexes
    _queue: deque[_Waiting | Loss] = field(default_factory=deque)
    _open: dict[int, list[tuple[_Waiting, int]]] = field(default_factory=dict)
    """By producer id, the batches of its transaction."""
    _waiting_bytes: int = 0

    def take(
        self, batches: SoundBatches, number: int, losses: SegmentLosses
    ) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """The next batches of the span with this number; what is handed on has the number of its own."""
        attributes = batches.headers["attributes"]
        concerned = np.flatnonzero(attributes & (_TRANSACTIONAL | _CONTROL))
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
                fates[row] = _UNDECIDED
                self._open.setdefault(producer, []).append((waiting, row))
                continue
            fates[row] = _LEFT_OUT
            if int(attributes[row]) & _TRANSACTIONAL and producer in self._open:
                yield from self._end(waiting, row, producer)
        yield from self._decided()
        while self._waiting_bytes > MOST_WAITING_BYTES and self._queue:
            yield from self._ask_indexes(all_of_them=False)
            yield from self._decided()

    def interrupted(self) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """Before offsets that are missing, among which a marker may be: what waits is decided by the indexes."""
        if self._open:
            yield from self._ask_indexes(all_of_them=True)
        yield from self._decided()

    def queue_loss(self, loss: Loss) -> Iterator[tuple[SoundBatches, int] | Loss]:
        """Hands on what is lost in its place among the batches."""
        if self._queue:
            self._queue.append(loss)
        else:
            yield loss

    def open_since(self) -> int | None:
        """The first offset of which nothing is returned, as a transaction that begins there has no end; None where
        there is none. To be asked at the end."""
        for one in self._queue:
            if isinstance(one, _Waiting):
                return int(one.batches.first_offsets[one.undecided()])
        return None

    def _end(self, waiting: _Waiting, row: int, producer: int) -> Iterator[Loss]:
        """The end of a producer's transaction, as its marker says."""
        batches = waiting.batches
        header = BatchHeader._make(batches.headers[row].item())
        try:
            records = read_records(batches.buffer, int(batches.positions[row]), header)
            kinds = [read_control_type(one) for one in records]
        except DecodeError as error:
            position = int(batches.file_positions[row])
            yield waiting.losses.loss(FindingCode.BATCH_CORRUPT, Part.LOG, error.reason, position=position)
            yield from self._resolve(producer)
            return
        self._decide(producer, is_aborted=ControlType.ABORT in kinds)

    def _decide(self, producer: int, *, is_aborted: bool) -> None:
        for waiting, row in self._open.pop(producer):
            waiting.fates[row] = _LEFT_OUT if is_aborted else _RETURNED

    def _ask_indexes(self, *, all_of_them: bool) -> Iterator[Loss]:
        """Decides the transaction that holds up the others, or all."""
        if all_of_them:
            for producer in list(self._open):
                yield from self._resolve(producer)
            return
        head = self._queue[0]
        assert isinstance(head, _Waiting)
        yield from self._resolve(int(head.batches.headers["producerId"][head.undecided()]))
        if head.undecided() == head.done and head.done < len(head.fates) and head.fates[head.done] == _UNDECIDED:
            self._waiting_bytes = 0  # its end is in no index either: it waits for the log's end

    def _resolve(self, producer: int) -> Iterator[Loss]:
        """Decides each batch of a producer's transaction by the indexes."""
        left: list[tuple[_Waiting, int]] = []
        for waiting, row in self._open.pop(producer, ()):
            base, last = int(waiting.batches.first_offsets[row]), int(waiting.batches.last_offsets[row])
            end = yield from self.indexes.end_of(producer, base, waiting.number)
            if end is TransactionEnd.OPEN:
                left.append((waiting, row))
            elif end is TransactionEnd.UNKNOWN:
                waiting.fates[row] = _LEFT_OUT
                yield waiting.losses.loss(
                    FindingCode.TRANSACTION_INDEX_MISSING,
                    Part.TRANSACTION_INDEX,
                    f"whether the transaction of producer {producer} was aborted is not known",
                    offsets=(base, last),
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

"""The transactions of a log that were aborted, and whether its transaction index has them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.log_scan import LogBlock
from tieredctl.formats.record_batches import (
    Attributes,
    BatchHeader,
    ControlType,
    read_control_type,
    read_records,
)
from tieredctl.ops.verification.index_check import Exemptions

TRANSACTION_ENTRY_BYTES = 34
# numpy takes longer to make a number of a flag than to find it in a block.
_TRANSACTIONAL, _CONTROL = int(Attributes.TRANSACTIONAL), int(Attributes.CONTROL)


@dataclass(frozen=True, slots=True)
class AbortMarker:
    """An ABORT marker, and what its log shows about the transaction.

    `first_offset` is that of the transaction's first batch in this log; None where it has none here, and then the
    transaction may have been empty, for which Kafka indexes nothing. `stable_offset` is the last stable offset after
    the marker, as far as this log shows. `may_begin_before` says that, as far as this log shows, the transaction may
    have begun before the log.
    """

    producer_id: int
    offset: int
    position: int
    first_offset: int | None
    stable_offset: int
    may_begin_before: bool


@dataclass(frozen=True, slots=True)
class UnreadableMarker:
    """A transactional control batch with a sound CRC that cannot be parsed. `position` is its byte in the log."""

    position: int
    offset: int
    reason: str


class AbortedTransactions:
    """Takes a log's batches block by block, and keeps the ABORT markers."""

    def __init__(self) -> None:
        self.markers: list[AbortMarker] = []
        self.unreadable: list[UnreadableMarker] = []
        self._open: dict[int, int] = {}
        self._first_end: dict[int, int] = {}

    def feed(self, block: LogBlock[HeaderColumns]) -> None:
        """The log's next sound batches."""
        attributes = block.headers["attributes"]
        transactional = (attributes & _TRANSACTIONAL) != 0
        if not transactional.any():
            return
        ending = np.flatnonzero(transactional & ((attributes & _CONTROL) != 0))
        behind = 0
        for index in [*ending.tolist(), len(attributes)]:
            self._begin(block.headers[behind:index][transactional[behind:index]])
            if index < len(attributes):
                self._end(block, index)
            behind = index + 1

    def others_may_begin_before(self, marker: AbortMarker) -> bool:
        """Whether another producer's transaction that ends in this log may have been open since before it when
        `marker` was written."""
        return any(producer != marker.producer_id and end > marker.offset for producer, end in self._first_end.items())

    def _begin(self, headers: HeaderColumns) -> None:
        producers, first = np.unique(headers["producerId"], return_index=True)
        for producer, offset in zip(producers.tolist(), headers["baseOffset"][first].tolist(), strict=True):
            self._open.setdefault(producer, offset)

    def _end(self, block: LogBlock[HeaderColumns], index: int) -> None:
        header = BatchHeader._make(block.headers[index].item())
        position = block.file_position + int(block.positions[index])
        producer = header.producer_id
        first_offset = self._open.pop(producer, None)
        ended_before = producer in self._first_end
        self._first_end.setdefault(producer, header.base_offset)
        try:
            for record in read_records(block.buffer, block.positions[index], header):
                if read_control_type(record) == ControlType.ABORT:
                    stable = min(self._open.values(), default=record.offset + 1)
                    marker = AbortMarker(producer, record.offset, position, first_offset, stable, not ended_before)
                    self.markers.append(marker)
        except DecodeError as error:
            self.unreadable.append(UnreadableMarker(position, header.base_offset, error.reason))


@dataclass(slots=True)
class TransactionIndexCheck:
    """Compares the entries of a transaction index with the ABORT markers of its log.

    After damage in the log it is unknown when transactions began: there, an entry only needs its marker.
    """

    start_offset: int
    transactions: AbortedTransactions
    open_at_end: Collection[int] | None
    """First offsets of the transactions that the producer snapshot says are open; None where it cannot be read."""
    exempt: Exemptions
    _unmatched: dict[tuple[int, int], AbortMarker] = field(init=False)
    _first_damaged: int | None = field(init=False)

    def __post_init__(self) -> None:
        markers = self.transactions.markers
        self._unmatched = {(marker.producer_id, marker.offset): marker for marker in markers}
        self._first_damaged = min((first for first, _ in self.exempt.positions), default=None)

    def first_wrong(self, entries: list[AbortedTransaction]) -> int | None:
        """The number, from 0, of the first entry that matches no aborted transaction of the log."""
        lasts = np.array([entry.last_offset for entry in entries], np.int64)
        reached = -1
        for number, (entry, exempt) in enumerate(zip(entries, self.exempt.cover_offsets(lasts), strict=True)):
            marker = self._unmatched.pop((entry.producer_id, entry.last_offset), None)
            if exempt:
                continue
            if marker is None or entry.last_offset <= reached or not self._describes(entry, marker):
                return number
            reached = entry.last_offset
        return None

    def without_entry(self) -> list[AbortMarker]:
        """The markers that need an entry and had none among those checked."""
        return [m for m in self._unmatched.values() if m.first_offset is not None and self._is_certain(m)]

    def _is_certain(self, marker: AbortMarker) -> bool:
        return self._first_damaged is None or marker.position < self._first_damaged

    def _describes(self, entry: AbortedTransaction, marker: AbortMarker) -> bool:
        if not 0 <= entry.first_offset <= entry.last_offset or entry.last_stable_offset < 0:
            return False
        return not self._is_certain(marker) or (self._begins(entry, marker) and self._is_stable(entry, marker))

    def _begins(self, entry: AbortedTransaction, marker: AbortMarker) -> bool:
        if entry.first_offset < self.start_offset:
            return marker.may_begin_before
        return entry.first_offset == marker.first_offset

    def _is_stable(self, entry: AbortedTransaction, marker: AbortMarker) -> bool:
        if entry.last_stable_offset >= self.start_offset:
            return entry.last_stable_offset == marker.stable_offset
        if self.open_at_end is None or self.transactions.others_may_begin_before(marker):
            return True
        return entry.last_stable_offset in self.open_at_end

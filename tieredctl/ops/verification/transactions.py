"""Which transactions a log aborts: what its transaction index must hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.log_scan import LogBlock
from tieredctl.formats.record_batches import (
    Attributes,
    BatchHeader,
    ControlType,
    read_control_type,
    read_records,
)


@dataclass(frozen=True, slots=True)
class AbortMarker:
    """An ABORT marker, and what the log that holds it tells of its transaction.

    `first_offset` is that of the transaction's first batch in this log; None where it has none here, and then the
    transaction may have been empty, for which Kafka indexes nothing. `stable_offset` is the last stable offset behind
    the marker, as far as this log tells: a transaction that began before this log may hold it lower.
    """

    producer_id: int
    offset: int
    position: int
    first_offset: int | None
    stable_offset: int


class AbortedTransactions:
    """Takes a log's batches block by block, and keeps the ABORT markers."""

    def __init__(self) -> None:
        self.markers: list[AbortMarker] = []
        self._open: dict[int, int] = {}

    def feed(self, block: LogBlock[HeaderColumns]) -> None:
        """Raises DecodeError where a control batch with a sound CRC cannot be parsed."""
        attributes = block.headers["attributes"]
        transactional = (attributes & Attributes.TRANSACTIONAL) != 0
        if not transactional.any():
            return
        ending = np.flatnonzero(transactional & ((attributes & Attributes.CONTROL) != 0))
        behind = 0
        for index in [*ending.tolist(), len(attributes)]:
            self._begin(block.headers[behind:index][transactional[behind:index]])
            if index < len(attributes):
                self._end(block, index)
            behind = index + 1

    def _begin(self, headers: HeaderColumns) -> None:
        producers, first = np.unique(headers["producerId"], return_index=True)
        for producer, offset in zip(producers.tolist(), headers["baseOffset"][first].tolist(), strict=True):
            self._open.setdefault(producer, offset)

    def _end(self, block: LogBlock[HeaderColumns], index: int) -> None:
        header = BatchHeader._make(block.headers[index].item())
        position = block.positions[index]
        first_offset = self._open.pop(header.producer_id, None)
        for record in read_records(block.buffer, position, header):
            if read_control_type(record) == ControlType.ABORT:
                stable = min(self._open.values(), default=record.offset + 1)
                at = block.file_position + position
                self.markers.append(AbortMarker(header.producer_id, record.offset, at, first_offset, stable))

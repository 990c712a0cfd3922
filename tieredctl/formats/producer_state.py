"""What a log does to its producers: their state after it, and the transactions that it aborts.

Sources: ProducerStateManager, ProducerAppendInfo, ProducerStateEntry, LogSegment.updateProducerState.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.control_records import decode_control_record
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.log_scan import LogBlock
from tieredctl.formats.producer_snapshot import ProducerEntry
from tieredctl.formats.record_batches import (
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attributes,
    BatchHeader,
    ControlType,
    read_records,
)

_NO_OFFSET = _NO_EPOCH = -1
_SEQUENCES = 1 << 31
"""The last of them is followed by 0."""


class ProducerState:
    """Takes a sound log's batches block by block.

    Unlike a broker, it has no clock and never expires a producer that was silent for producer.id.expiration.ms: a
    broker that loads its snapshot does so then.
    """

    def __init__(self, before: Iterable[ProducerEntry]) -> None:
        """`before`: the producers as of the log's first offset."""
        self._entries = {entry.producer_id: entry for entry in before}
        self.aborted: list[AbortedTransaction] = []
        """In the order of their markers."""

    def feed(self, block: LogBlock[HeaderColumns]) -> None:
        """The log's next batches. Raises DecodeError for a marker that cannot be read."""
        attributes = block.headers["attributes"]
        producing = block.headers["producerId"] != NO_PRODUCER_ID
        ends = np.flatnonzero(producing & ((attributes & Attributes.CONTROL) != 0))
        after = 0
        for row in ends.tolist():
            self._append_data(block.headers[after:row][producing[after:row]])
            self._end_transaction(block, row)
            after = row + 1
        self._append_data(block.headers[after:][producing[after:]])

    def entries(self) -> list[ProducerEntry]:
        """All producers, by rising id."""
        return [entry for _, entry in sorted(self._entries.items())]

    def _append_data(self, headers: HeaderColumns) -> None:
        """Batches of data between two markers: each producer's last batch counts, and where a transaction began."""
        if not len(headers):
            return
        transactional = headers[(headers["attributes"] & Attributes.TRANSACTIONAL) != 0]
        begun, first = np.unique(transactional["producerId"], return_index=True)
        begins = dict(zip(begun.tolist(), transactional["baseOffset"][first].tolist(), strict=True))
        producers, last = np.unique(headers["producerId"][::-1], return_index=True)
        for producer, row in zip(producers.tolist(), (len(headers) - 1 - last).tolist(), strict=True):
            header = BatchHeader._make(headers[row].item())
            before = self._entries.get(producer)
            self._entries[producer] = ProducerEntry(
                producer_id=producer,
                epoch=header.producer_epoch,
                last_sequence=_last_sequence(header),
                last_offset=header.last_offset,
                offset_delta=header.last_offset_delta,
                timestamp=header.max_timestamp,
                coordinator_epoch=before.coordinator_epoch if before else _NO_EPOCH,
                current_txn_first_offset=_transaction_of(before, begins.get(producer, _NO_OFFSET)),
            )

    def _end_transaction(self, block: LogBlock[HeaderColumns], row: int) -> None:
        header = BatchHeader._make(block.headers[row].item())
        record = next(read_records(block.buffer, block.positions[row], header), None)
        if record is None:  # the whole transaction was cleaned from the log
            return
        marker = decode_control_record(record)
        if marker.type not in (ControlType.ABORT, ControlType.COMMIT) or marker.fields is None:
            return
        producer = header.producer_id
        before = self._entries.get(producer, _unknown(producer))
        same_epoch = before.epoch == header.producer_epoch
        self._entries[producer] = (before if same_epoch else _unknown(producer))._replace(
            epoch=header.producer_epoch,
            timestamp=record.timestamp,
            coordinator_epoch=marker.fields["CoordinatorEpoch"],
            current_txn_first_offset=_NO_OFFSET,
        )
        # Kafka does not index a transaction without data.
        if marker.type == ControlType.ABORT and before.current_txn_first_offset != _NO_OFFSET:
            first, last = before.current_txn_first_offset, header.base_offset
            self.aborted.append(AbortedTransaction(producer, first, last, self._last_stable_offset(last)))

    def _last_stable_offset(self, marker: int) -> int:
        begins = (entry.current_txn_first_offset for entry in self._entries.values())
        return min((first for first in begins if first != _NO_OFFSET), default=marker + 1)


def _unknown(producer_id: int) -> ProducerEntry:
    """A producer without a batch so far."""
    return ProducerEntry(producer_id, _NO_EPOCH, NO_SEQUENCE, _NO_OFFSET, 0, NO_TIMESTAMP, _NO_EPOCH, _NO_OFFSET)


def _transaction_of(before: ProducerEntry | None, begins: int) -> int:
    """Where the producer's open transaction began: before, or with its first transactional batch since."""
    if before is not None and before.current_txn_first_offset != _NO_OFFSET:
        return before.current_txn_first_offset
    return begins


def _last_sequence(header: BatchHeader) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES

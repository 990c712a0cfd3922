"""How a transaction ended, by the transaction indexes and producer snapshots of the segments from its own on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import Enum
from typing import TypeVar

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.formats.segment_parts import transaction_index_entries
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl.records.lost_records import Loss, SegmentLosses
from tieredctl.records.segment_objects import SegmentObjects
from tieredctl.records.served_spans import ServedSpan

_Read = TypeVar("_Read")
_FINDINGS = {
    Part.TRANSACTION_INDEX: FindingCode.INDEX_DAMAGED,
    Part.PRODUCER_SNAPSHOT: FindingCode.PRODUCER_SNAPSHOT_DAMAGED,
}


class TransactionEnd(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    """Its end is not in remote storage."""
    UNKNOWN = "unknown"


class TransactionIndexes:
    """Of the segments that serve a partition; each is read when it is asked for, once."""

    def __init__(self, store: ObjectStore, layout: SegmentObjects, spans: Sequence[ServedSpan]) -> None:
        self._store, self._layout, self._spans = store, layout, spans
        self._aborted: dict[int, Sequence[AbortedTransaction] | None] = {}
        self._open: dict[int, dict[int, int] | None] = {}

    def end_of(self, producer: int, offset: int, number: int) -> Generator[Loss, None, TransactionEnd]:
        """How the transaction ended that a producer's batch with this first offset belongs to, which is in the span of
        this number. Yields what is damaged. Raises TieredctlError where nothing can be read from the store."""
        for at in range(number, len(self._spans)):
            aborted = yield from self._aborted_in(at)
            if aborted is None:
                return TransactionEnd.UNKNOWN
            for entry in aborted:
                if entry.producer_id == producer and entry.first_offset <= offset <= entry.last_offset:
                    return TransactionEnd.ABORTED
            is_last = at + 1 == len(self._spans)
            if self._spans[at].is_active:
                return TransactionEnd.OPEN
            if not self._spans[at].reaches_end and not is_last:
                continue  # its snapshot is of another line of leaders
            still_open = yield from self.open_after(at)
            if still_open is None:
                if is_last:
                    return TransactionEnd.UNKNOWN
                continue
            if still_open.get(producer, offset + 1) > offset:
                return TransactionEnd.COMMITTED
        return TransactionEnd.OPEN

    def open_after(self, number: int) -> Generator[Loss, None, dict[int, int] | None]:
        """The first offset of each producer's transaction that is open at the end of a span's segment; None where that
        cannot be read."""
        if number not in self._open:
            entries = yield from self._read(number, Part.PRODUCER_SNAPSHOT, read_producer_snapshot)
            self._open[number] = (
                None
                if entries is None
                else {
                    entry.producer_id: entry.current_txn_first_offset
                    for entry in entries
                    if entry.current_txn_first_offset >= 0
                }
            )
        return self._open[number]

    def _aborted_in(self, number: int) -> Generator[Loss, None, Sequence[AbortedTransaction] | None]:
        """The aborted transactions that ended in a span; None where they cannot be read."""
        if number not in self._aborted:
            segment, _, last = self._spans[number]
            entries: Sequence[AbortedTransaction] | None = ()
            if not segment.txn_idx_empty:
                entries = yield from self._read(number, Part.TRANSACTION_INDEX, transaction_index_entries)
            if entries is not None:
                entries = [one for one in entries if one.last_offset <= last]
            self._aborted[number] = entries
        return self._aborted[number]

    def _read(
        self, number: int, part: Part, decode: Callable[[bytes], Sequence[_Read]]
    ) -> Generator[Loss, None, Sequence[_Read] | None]:
        segment = self._spans[number].segment
        losses = SegmentLosses(self._layout, segment)
        try:
            return decode(self._layout.open_segment(self._store, segment).read(part))
        except DecodeError as error:
            yield losses.loss(_FINDINGS[part], part, error.reason, position=error.position)
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            if error.code is ErrorCode.OBJECT_MISSING and part is Part.TRANSACTION_INDEX:
                return ()  # as of every segment without an aborted transaction
            yield losses.unread(part, error)
        return None

"""How a transaction ended whose marker may be among what cannot be read, by the transaction indexes and producer
snapshots of segments."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import Enum
from functools import partial
from typing import TypeVar

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.formats.segment_parts import transaction_index_entries
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.index_contradiction import index_contradiction
from tieredctl.records.lost_records import Loss, SegmentLosses, read_twice
from tieredctl.records.segment_log import SegmentLog
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
    """Not among the offsets that cannot be read, nor before the end of their segment: a later marker tells."""
    UNKNOWN = "unknown"


class TransactionIndexes:
    """The transaction indexes of the segments that serve a partition; each is read when it is asked for, once."""

    def __init__(self, store: ObjectStore, layout: SegmentObjects, spans: Sequence[ServedSpan]) -> None:
        self._store, self._layout, self._spans = store, layout, spans
        self._aborted: dict[int, Sequence[AbortedTransaction] | None] = {}
        self._open: dict[int, dict[int, int] | None] = {}

    def end_of(
        self, producer: int, offset: int, damaged: int, lost_until: int, *, is_before: bool
    ) -> Generator[Loss, None, TransactionEnd]:
        """How the transaction ended that a producer's batch with this first offset belongs to, whose marker may be
        among the offsets that cannot be read, up to `lost_until`, of the span with the number `damaged`, or before that
        span in no segment at all (`is_before`). Yields what is damaged. Raises TieredctlError where nothing can be read
        from the store."""
        is_certain = not is_before
        for at in range(damaged, len(self._spans)):
            span = self._spans[at]
            if span.is_active and at > damaged:
                break  # its index is as incomplete as its log
            still_open = (yield from self.open_after(at)) if span.reaches_end and not span.is_active else None
            if still_open is not None and still_open.get(producer, offset + 1) <= offset:
                return TransactionEnd.OPEN
            aborted = yield from self._aborted_in(at)
            for entry in aborted or ():
                if entry.producer_id == producer and entry.first_offset <= offset <= entry.last_offset:
                    return TransactionEnd.ABORTED
            is_certain = is_certain and aborted is not None
            if at == damaged and not span.segment.txn_idx_empty:
                # Nothing says how long an index is: only an entry from there on proves that it was not cut before.
                is_certain = is_certain and any(entry.last_offset >= lost_until for entry in aborted or ())
            if still_open is not None or not is_certain:
                return TransactionEnd.COMMITTED if is_certain else TransactionEnd.UNKNOWN
        return TransactionEnd.UNKNOWN

    def open_after(self, number: int) -> Generator[Loss, None, dict[int, int] | None]:
        """The first offset of each producer's transaction that is open at the end of a span's segment; None where that
        cannot be read."""
        if number not in self._open:
            read = partial(self._read, number=number, part=Part.PRODUCER_SNAPSHOT, decode=read_producer_snapshot)
            entries = yield from read_twice(self._store, read)
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
        """The aborted transactions that ended in a span; None where they cannot be read, or cannot be trusted."""
        if number not in self._aborted:
            span = self._spans[number]
            entries: Sequence[AbortedTransaction] | None = ()
            if not span.segment.txn_idx_empty:
                entries = yield from read_twice(self._store, partial(self._indexed_in, number))
            if entries is not None:
                entries = [one for one in entries if one.last_offset <= span.last]
            self._aborted[number] = entries
        return self._aborted[number]

    def _indexed_in(
        self, number: int, store: ObjectStore
    ) -> Generator[Loss, None, Sequence[AbortedTransaction] | None]:
        entries = yield from self._read(store, number, Part.TRANSACTION_INDEX, transaction_index_entries)
        return None if entries is None else (yield from self._trusted(store, number, entries))

    def _trusted(
        self, store: ObjectStore, number: int, entries: Sequence[AbortedTransaction]
    ) -> Generator[Loss, None, Sequence[AbortedTransaction] | None]:
        """The entries of an index, unless it is empty where the metadata promises some, or contradicts its log."""
        if not entries:
            return None
        span = self._spans[number]
        segment = span.segment
        before, after = None, None
        if number and self._spans[number - 1].reaches_end and self._spans[number - 1].last + 1 == segment.start_offset:
            before = yield from self.open_after(number - 1)
        if not span.is_active:
            after = yield from self.open_after(number)
        whole = span._replace(first=segment.start_offset, last=segment.end_offset)
        log = SegmentLog(store, self._layout, whole).batches()
        reason = index_contradiction(entries, segment.start_offset, log, before, after)
        if reason is None:
            return entries
        yield SegmentLosses(self._layout, segment).loss(FindingCode.INDEX_DAMAGED, Part.TRANSACTION_INDEX, reason)
        return None

    def _read(
        self, store: ObjectStore, number: int, part: Part, decode: Callable[[bytes], Sequence[_Read]]
    ) -> Generator[Loss, None, Sequence[_Read] | None]:
        segment = self._spans[number].segment
        losses = SegmentLosses(self._layout, segment)
        try:
            return decode(self._layout.open_segment(store, segment).read(part))
        except DecodeError as error:
            yield losses.loss(_FINDINGS[part], part, error.reason, position=error.position)
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            if error.code is ErrorCode.OBJECT_MISSING and part is Part.TRANSACTION_INDEX:
                return None  # perhaps as none was aborted: brokers before 4.0 do not say
            yield losses.unread(part, error)
        return None

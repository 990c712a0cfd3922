"""The records of one partition, in order, as Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import pyarrow as pa

from tieredctl.formats.record_batches import Attributes
from tieredctl.formats.record_fields import MalformedBatch
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.in_parallel import in_turn
from tieredctl.ops.remote.log_bytes import MOST_BYTES_IN_FLIGHT
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.arrow_records import arrow_records, chosen_schema, damage_row
from tieredctl.records.committed import CommittedBatches
from tieredctl.records.lost_records import Loss, LostRecords, SegmentLosses
from tieredctl.records.remote_partition import RemotePartition, never_deleted
from tieredctl.records.request import GREATEST_OFFSET, Isolation, Moment, OnDamage, RecordPlace, RecordRequest
from tieredctl.records.segment_log import SegmentLog
from tieredctl.records.served_spans import ServedSpan, clipped
from tieredctl.records.sound_batches import SoundBatches
from tieredctl.records.time_lookup import offset_of_time
from tieredctl.records.transaction_indexes import TransactionIndexes

_CONTROL = int(Attributes.CONTROL)


class _Found(NamedTuple):
    """Batches whose records are returned, and the number of the span that they are of."""

    batches: SoundBatches
    number: int


class _Asked(NamedTuple):
    """What is read of the span of that number."""

    span: ServedSpan
    number: int
    log: SegmentLog


_Parts = Iterator[_Found | Loss]


class PartitionRecords:
    """Reads what is asked for of a partition, once. Memory follows the largest batch, and what of a log is asked for
    ahead. Threads that ask end with the iterator: close it where it is not read to its end."""

    def __init__(
        self,
        remote: RemotePartition,
        store: ObjectStore,
        layout: SegmentObjects,
        request: RecordRequest,
        is_deleted: Callable[[TopicIdPartition, str], bool] = never_deleted,
        *,
        continues: bool = False,
        passes_over_deleted: bool = False,
    ) -> None:
        """`is_deleted` says by the metadata of now whether a segment was deleted, or is being deleted: asked where one
        of its objects is missing. Without it such an object is lost. `continues` says that another reading returns the
        records before these: what is deleted meanwhile then is a gap between them. `passes_over_deleted` says that such
        a gap fails no reading."""
        self._remote = remote
        self._is_deleted = is_deleted
        self.partition = remote.partition
        self._store = store
        self._layout = layout
        self._request = request
        self._indexes = TransactionIndexes(store, layout, remote.spans)
        self.schema = chosen_schema(request.columns, with_damage=request.on_damage is OnDamage.ROW)
        """The schema of every record batch."""
        self.findings: list[Finding] = list(remote.findings)
        """What is damaged, as far as was read."""
        self.refusal: Finding | None = None
        """The first finding about what another key or user may be able to read."""
        self.lost_offsets = 0
        """How many offsets could not be read."""
        self.last_lost_offset = -1
        """The greatest of them."""
        self.bytes_read = 0
        """The bytes read of logs, as the broker wrote them."""
        self.open_transaction_from: int | None = None
        """The first offset of a transaction whose end is not in remote storage, if one ended the readable part."""
        self.next_offset: int | None = None
        """Up to where (exclusive) all was read that can be; to be asked at the end. None where nothing is there."""
        self._within = (0, GREATEST_OFFSET)
        self._passes_over_deleted = passes_over_deleted
        self._has_begun = continues or remote.read_up_to is not None
        """Whether what is deleted from now on is missing between the records that are returned."""
        self._deleted_before: list[Loss] = []
        """What was deleted before the first of them."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Raises LostRecords with `OnDamage.FAIL` for what cannot be read, and TieredctlError where the store answers
        nothing."""
        for part in self._parts():
            yield from self._lost(part) if isinstance(part, Loss) else self._records(part)
        self._begin(Severity.WARNING)  # nothing was returned, and a topic may be gone

    def _parts(self) -> _Parts:
        first = yield from self._offset_of(self._request.start, 0)
        end = yield from self._offset_of(self._request.end, GREATEST_OFFSET + 1, is_read=True)
        if self._remote.end_offset is None:
            self._within = first, end - 1
            for hole in self._remote.holes(*self._within):
                self.next_offset = None if hole.offsets is None else hole.offsets[1] + 1
                yield hole
            return
        last = min(end, self._remote.end_offset) - 1
        if self._request.isolation is Isolation.READ_COMMITTED:
            last = yield from self._last_stable(last)
        self.next_offset = last + 1
        self._within = first, last
        if self._request.isolation is Isolation.READ_COMMITTED:
            yield from self._committed(first, last)
            return
        for part, number, _ in self._sound(first, last):
            if isinstance(part, Loss):
                yield part
            else:
                yield _Found(part.where((part.headers["attributes"] & _CONTROL) == 0), number)

    def _offset_of(self, place: RecordPlace, otherwise: int, *, is_read: bool = False) -> Generator[Loss, None, int]:
        """The offset of a place; `otherwise` where there is none. `is_read` says that what is lost before it is met
        again when the records are read."""
        if not isinstance(place, Moment):
            return otherwise if place is None else place
        most_unfolded = self._request.most_unfolded
        looked_up = offset_of_time(
            *(self._store, self._layout, self._remote.spans, place.timestamp_ms), most_unfolded=most_unfolded
        )
        found = yield from (_without_offsets(looked_up) if is_read else looked_up)
        return GREATEST_OFFSET + 1 if found is None else found

    def _last_stable(self, last: int) -> Generator[Loss, None, int]:
        """The last offset before any transaction whose end is not in remote storage."""
        if not self._remote.spans[-1].reaches_end or self._remote.spans[-1].is_active:
            return last
        still_open = yield from self._indexes.open_after(len(self._remote.spans) - 1)
        begin = min((still_open or {}).values(), default=None)
        if begin is None or begin > last:
            return last
        self.open_transaction_from = begin
        return begin - 1

    def _sound(self, first: int, last: int) -> Iterator[tuple[SoundBatches | Loss, int, SegmentLosses | None]]:
        """What segments serve of some offsets, control batches too, and what is missing between them."""
        holes = list(self._remote.holes(first, last))
        for asked in self._asked_ahead(first, last):
            while holes and holes[0].offsets and holes[0].offsets[0] < asked.span.first:
                yield holes.pop(0), asked.number, None
            yield from self._of_segment(*asked)
        for hole in holes:  # before the span that follows what is asked for
            yield hole, sum(span.first <= last for span in self._remote.spans), None

    def _asked_ahead(self, first: int, last: int) -> Iterator[_Asked]:
        """What is asked for of each span. Where reads wait, small logs are read while what comes before them is: one
        more with each that was handed out."""
        spans = (
            (one, number) for number, span in enumerate(self._remote.spans) for one in clipped([span], first, last)
        )
        most = self._store.parallel_reads
        if most == 1:
            return (_Asked(*one, self._log_of(one[0])) for one in spans)

        def ask(one: tuple[ServedSpan, int]) -> _Asked:
            asked = _Asked(*one, self._log_of(one[0]))
            asked.log.ask()
            return asked

        return in_turn(ask, spans, most, most=most, at_first=1)

    def _log_of(self, span: ServedSpan, store: ObjectStore | None = None) -> SegmentLog:
        reads_on = self.bytes_read >= MOST_BYTES_IN_FLIGHT
        limit, most_unfolded = self._request.bytes_in_flight, self._request.most_unfolded
        return SegmentLog(
            *(store or self._store, self._layout, span),
            reads_on=reads_on,
            bytes_in_flight=limit,
            most_unfolded=most_unfolded,
        )

    def _of_segment(
        self, asked: ServedSpan, number: int, log: SegmentLog
    ) -> Iterator[tuple[SoundBatches | Loss, int, SegmentLosses | None]]:
        losses = SegmentLosses(self._layout, asked.segment)
        for part in self._read_twice(asked, log):
            if isinstance(part, Loss):
                yield part, number, losses
            elif len(some := part.where((part.last_offsets >= asked.first) & (part.first_offsets <= asked.last))):
                yield some, number, losses

    def _read_twice(self, asked: ServedSpan, log: SegmentLog) -> Iterator[SoundBatches | Loss]:
        """What a segment serves. What looks lost in a store is read again over new connections, and it is what that
        reading finds from there on: bytes may be altered on the way."""
        reached = -1
        for part in self._read(log):
            if isinstance(part, Loss) and not asked.is_on_disk:
                break
            if isinstance(part, SoundBatches):
                reached = max(reached, int(part.last_offsets.max()))
            yield part
        else:
            return
        for part in self._read(self._log_of(asked, self._store.reconnected())):
            if isinstance(part, Loss):
                if part.offsets is None or part.offsets[1] > reached:
                    yield part
            elif len(more := part.where(part.last_offsets > reached)):
                yield more

    def _read(self, log: SegmentLog) -> Iterator[SoundBatches | Loss]:
        try:
            yield from log.batches()
        finally:
            self.bytes_read += log.bytes_read

    def _committed(self, first: int, last: int) -> _Parts:
        begin = yield from self._first_undecided(first)
        end = self._remote.spans[-1].last
        committed = CommittedBatches(self._indexes, lambda offset: self._sound(offset + 1, end), (first, last))
        for part, number, losses in self._sound(begin, last):
            if isinstance(part, Loss):
                yield from _as_found(committed.lost(part, number, is_before=losses is None))
            else:
                assert losses is not None
                yield from _as_found(committed.take(part, number, losses))
            if committed.is_finished:
                break
        yield from _as_found(committed.finish())
        since = committed.open_since()
        if since is not None:
            self.open_transaction_from = self.next_offset = since

    def _first_undecided(self, first: int) -> Generator[Loss, None, int]:
        """From where on markers have to be seen: of an active segment on a disk no producer snapshot says which
        transactions are open at its end."""
        active = self._remote.spans[-1]
        if not active.is_active:
            return first
        still_open: dict[int, int] = {}
        if len(self._remote.spans) > 1:
            still_open = (yield from self._indexes.open_after(len(self._remote.spans) - 2)) or {}
        return min(first, active.first, *still_open.values())

    def _records(self, found: _Found) -> Iterator[pa.RecordBatch]:
        span = self._remote.spans[found.number]
        within = max(span.first, self._within[0]), min(span.last, self._within[1])
        reached = within[0] - 1
        for fields in found.batches.fields(self._request.most_unfolded):
            if isinstance(fields, MalformedBatch):
                losses = SegmentLosses(self._layout, span.segment)
                yield from self._lost(losses.malformed(found.batches, fields, (reached + 1, within[1])))
                continue
            made = arrow_records(
                self.schema, self._remote.partition, span.segment.segment_id, found.batches.headers, fields, within
            )
            if made.num_rows:
                reached = max(reached, int(fields.offsets[-1]))
                self._begin(Severity.INFO)
                yield made

    def _begin(self, severity: Severity) -> None:
        """Tells what was deleted before: whoever begins a moment later does not ask for it."""
        self.findings += [loss.by_deletion(severity).finding for loss in self._deleted_before]
        self._deleted_before.clear()
        self._has_begun = True

    def _lost(self, loss: Loss) -> Iterator[pa.RecordBatch]:
        segment_id = loss.missing_of
        was_deleted = segment_id is not None and self._is_deleted(self.partition, segment_id)
        if was_deleted:
            if not self._has_begun:
                self._deleted_before.append(loss)
                return
            loss = loss.by_deletion()
        self.findings.append(loss.finding)
        if loss.is_refused and self.refusal is None:
            self.refusal = loss.finding
        if loss.offsets is None:
            return
        first, last = max(loss.offsets[0], self._within[0]), min(loss.offsets[1], self._within[1])
        if first > last:
            return  # read only to learn how transactions ended
        self.lost_offsets += last - first + 1
        self.last_lost_offset = max(self.last_lost_offset, last)
        if self._request.on_damage is OnDamage.FAIL and not (was_deleted and self._passes_over_deleted):
            raise LostRecords(loss.finding)
        if self._request.on_damage is OnDamage.ROW:
            about = loss.finding.about
            segment_id = about.segment_id if isinstance(about, SegmentSubject) else None
            reason = f"{loss.finding.code}: {loss.finding.message}"
            yield damage_row(self.schema, self._remote.partition, segment_id or None, first, reason)


def _as_found(parts: Iterator[tuple[SoundBatches, int] | Loss]) -> _Parts:
    for part in parts:
        yield part if isinstance(part, Loss) else _Found(*part)


def _without_offsets(looked_up: Generator[Loss, None, int | None]) -> Generator[Loss, None, int | None]:
    """Only what costs no records."""
    while True:
        try:
            loss = next(looked_up)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        if loss.offsets is None:
            yield loss

"""Reads one segment out of the remote store, as deep as asked, and holds it against its metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.index_columns import TimeIndexColumns, read_offset_index_columns, read_time_index_columns
from tieredctl.formats.indexes import AbortedTransaction, read_transaction_index
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.formats.record_batches import HEADER_BYTES, LENGTH_AT, LOG_OVERHEAD
from tieredctl.layouts.protocol import Layout, Part, SegmentReader
from tieredctl.model.findings import Severity
from tieredctl.ops.verification.index_check import TIME_ENTRY_BYTES, OffsetIndexCheck, TimeIndexCheck, WrongEntry
from tieredctl.ops.verification.log_check import NO_TIMESTAMP, LogCheck, LogFacts
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask
from tieredctl.ops.verification.transactions import AbortMarker
from tieredctl.storage.protocol import ObjectStore

STREAM_BYTES = 1 << 22
_TRANSACTION_ENTRY_BYTES = 34
_Decoded = TypeVar("_Decoded")


def check_segment(task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
    """Everything that is wrong with a segment's objects. A store that fails is a finding, never an exception: the
    other segments are still looked at."""
    check = _SegmentCheck(task, layout.open_segment(store, task.metadata))
    try:
        check.run()
    except TieredctlError as error:
        check.findings.add("unreadable", Part.LOG, error.message)
    facts = check.facts
    return SegmentReport(
        task.metadata.segment_id, check.bytes_read, facts.batches, facts.records, tuple(check.findings.found)
    )


class _SegmentCheck:
    def __init__(self, task: SegmentTask, segment: SegmentReader) -> None:
        self._metadata = task.metadata
        self._task = task
        self._segment = segment
        self._parts: dict[Part, int] = {}
        self.findings = SegmentFindings(task.metadata, task.keys)
        self.facts = LogFacts()
        self.bytes_read = 0

    def run(self) -> None:
        self._parts = dict(self._segment.parts())
        if self._task.level is Level.FULL:
            self._check_small_parts()
            if Part.LOG in self._parts:
                self._check_log()
        elif Part.LOG in self._parts:
            self._check_headers()

    def _check_small_parts(self) -> None:
        self._decode(Part.PRODUCER_SNAPSHOT, "producer-snapshot-damaged", self._read_producer_snapshot)
        self._decode(Part.LEADER_EPOCH, "leader-epoch-checkpoint-damaged", self._read_leader_epochs)

    def _read_producer_snapshot(self, data: bytes) -> None:
        for entry in read_producer_snapshot(data):
            if entry.last_offset > self._metadata.end_offset:
                message = f"producer {entry.producer_id} has offset {entry.last_offset}, which is beyond the segment"
                self.findings.add("producer-snapshot-damaged", Part.PRODUCER_SNAPSHOT, message)
                return

    def _read_leader_epochs(self, data: bytes) -> None:
        starts = {entry.epoch: entry.start_offset for entry in read_leader_epoch_checkpoint(data)}
        for index, (epoch, offset) in enumerate(self._metadata.segment_leader_epochs):
            start = starts.get(epoch)
            if start is None or start > offset or (index > 0 and start != offset):
                said = "has no" if start is None else f"begins at {start} the"
                message = f"it {said} leader epoch {epoch}, which the metadata begins at {offset}"
                self.findings.add("leader-epoch-checkpoint-damaged", Part.LEADER_EPOCH, message)
                return

    def _decode(self, part: Part, code: str, decode: Callable[[bytes], _Decoded]) -> _Decoded | None:
        """What a small part holds; None, and a finding, where it cannot be decoded or is not there."""
        if part not in self._parts:
            return None
        data = self._segment.read(part)
        self.bytes_read += len(data)
        try:
            return decode(data)
        except DecodeError as error:
            self.findings.add(code, part, error.reason, position=error.position)
            return None

    def _check_log(self) -> None:
        base = self._metadata.start_offset
        offset_entries = self._decode(Part.OFFSET_INDEX, "index-damaged", read_offset_index_columns)
        time_entries = self._decode(Part.TIME_INDEX, "index-damaged", read_time_index_columns)
        offset_index = None if offset_entries is None else OffsetIndexCheck(offset_entries, base)
        time_index = None if time_entries is None else TimeIndexCheck(time_entries, base)
        check = LogCheck(self._metadata, offset_index, time_index)
        size = self._parts[Part.LOG]
        self.facts = check.run(self._segment.stream(Part.LOG, STREAM_BYTES), size)
        self.bytes_read += size
        short = self._report_size()
        self._report_log(short)
        if short:
            return
        if offset_index:
            self._report_offset_index(offset_index)
        if time_index:
            self._report_time_index(time_index)
        self._report_transactions(check.transactions.markers)

    def _check_headers(self) -> None:
        """The first batch, and what lies behind the last entry of the offset index."""
        size = self._parts[Part.LOG]
        entries = self._decode(Part.OFFSET_INDEX, "index-damaged", read_offset_index_columns)
        times = self._decode(Part.TIME_INDEX, "index-damaged", read_time_index_columns)
        last_entry = OffsetIndexCheck(entries.last(), self._metadata.start_offset) if entries else None
        tail_from = last_entry.last_position if last_entry and last_entry.last_position < size else 0
        tail = LogCheck(self._metadata, last_entry, None, first_position=tail_from)
        read_before = self._check_first_batch(size) if tail_from else 0
        self.facts = tail.run(self._ranges(tail_from, size), size - tail_from)
        self.facts.size = size
        self.facts.batches += 1 if read_before else 0
        self.bytes_read += read_before + size - tail_from
        short = self._report_size()
        self._report_log(short)
        if not short:
            if last_entry:
                self._report_offset_index(last_entry)
            if times:
                self._report_last_time(times)

    def _check_first_batch(self, size: int) -> int:
        """Reports what is wrong with it; the bytes it took."""
        header = self._segment.read(Part.LOG, 0, HEADER_BYTES)
        length = min(int.from_bytes(header[LENGTH_AT:LOG_OVERHEAD], signed=True) + LOG_OVERHEAD, size)
        batch = self._segment.read(Part.LOG, 0, max(length, HEADER_BYTES))
        self.facts = LogCheck(self._metadata, None, None).run([batch], len(batch))
        self._report_log(short=False)
        return len(batch)

    def _ranges(self, start: int, end: int) -> Iterator[bytes]:
        for position in range(start, end, STREAM_BYTES):
            yield self._segment.read(Part.LOG, position, min(position + STREAM_BYTES, end))

    def _report_last_time(self, entries: TimeIndexColumns) -> None:
        """The batch that the last entry names may lie anywhere, so it is held against the metadata alone."""
        if not len(entries.timestamps):
            return
        metadata, timestamp = self._metadata, int(entries.timestamps[-1])
        offset = metadata.start_offset + int(entries.relative_offsets[-1])
        if offset > metadata.end_offset or timestamp > metadata.max_timestamp_ms:
            message = f"its last entry, timestamp {timestamp} at offset {offset}, is beyond the segment"
            position = (len(entries.timestamps) - 1) * TIME_ENTRY_BYTES
            self.findings.add("index-damaged", Part.TIME_INDEX, message, position=position, offsets=(offset, offset))

    def _report_size(self) -> bool:
        """Whether the log's length is not what the metadata says; then what hangs on the length is not judged."""
        claimed, size = self._metadata.segment_size_in_bytes, self.facts.size
        if size == claimed:
            return False
        first = min(self.facts.last_offset + 1, self._metadata.end_offset)
        self.findings.add(
            "size-mismatch",
            Part.LOG,
            f"the log has {size} bytes where the metadata says {claimed}",
            position=min(size, claimed),
            offsets=(first, self._metadata.end_offset) if size < claimed else None,
        )
        return True

    def _report_log(self, short: bool) -> None:
        facts, claimed = self.facts, self._metadata.segment_size_in_bytes
        corrupt = [batch for batch in facts.corrupt if batch.position < claimed]
        for batch in corrupt:
            offsets = (batch.first_offset, batch.last_offset)
            self.findings.add("batch-corrupt", Part.LOG, batch.reason, position=batch.position, offsets=offsets)
        if facts.torn_at is not None and not short:
            end = self._metadata.end_offset
            first = min(facts.last_offset + 1, end)
            message = "the last batch is not all there"
            self.findings.add("batch-corrupt", Part.LOG, message, position=facts.torn_at, offsets=(first, end))
        for misplaced in facts.misplaced:
            code = "records-outside-segment" if misplaced.outside else "offsets-out-of-order"
            said = f"a batch claims offsets {misplaced.base_offset} to {misplaced.last_offset}"
            expected = f"where {misplaced.first_expected} or above belongs"
            if misplaced.outside:
                expected = f"the segment {self._metadata.start_offset} to {self._metadata.end_offset}"
            last = self._metadata.end_offset if misplaced.last_expected is None else misplaced.last_expected
            self.findings.add(
                code,
                Part.LOG,
                f"{said}; {expected}",
                position=misplaced.position,
                offsets=(misplaced.first_expected, last),
            )
        self._report_epochs()
        if facts.latest_beyond_claim is not None:
            message = f"timestamps reach {facts.max_timestamp}, the metadata says {self._metadata.max_timestamp_ms}"
            self.findings.add("timestamp-beyond-claim", Part.LOG, message, position=facts.latest_beyond_claim)

    def _report_epochs(self) -> None:
        misplaced = {batch.position for batch in self.facts.misplaced}
        wrong = [batch for batch in self.facts.wrong_epochs if batch[0] not in misplaced]
        if wrong:
            position, offset, epoch = wrong[0]
            message = f"the batch has leader epoch {epoch}, which the metadata does not give to offset {offset}"
            self.findings.add("epoch-mismatch", Part.LOG, message, position=position, offsets=(offset, offset))

    def _report_offset_index(self, index: OffsetIndexCheck) -> None:
        exempt = self.facts.exemptions
        wrong = [entry for entry in index.finish() if not exempt.cover(entry.log_position, entry.offset)]
        harmless = [entry for entry in wrong if entry.harmless]
        by_append = len(harmless) > 1 and not self._metadata.txn_idx_empty
        for entry in wrong:
            if not (entry.harmless and by_append):
                self._add_wrong_entry(Part.OFFSET_INDEX, entry)
        unindexed = self.facts.last_position - index.last_position
        if unindexed > self._task.index_interval_bytes and not wrong:
            message = f"it ends {unindexed} bytes before the last batch: its end is missing"
            size = self._parts[Part.OFFSET_INDEX]
            self.findings.add("index-damaged", Part.OFFSET_INDEX, message, position=size)

    def _add_wrong_entry(self, part: Part, entry: WrongEntry) -> None:
        # Kafka 3.x makes such entries itself where a follower appended several batches at once.
        severity = Severity.WARNING if entry.harmless and not self._metadata.txn_idx_empty else None
        message = f"its entry for offset {entry.offset} is wrong: {entry.reason}"
        offsets = (entry.offset, entry.offset)
        self.findings.add(
            "index-damaged", part, message, position=entry.index_position, offsets=offsets, severity=severity
        )

    def _report_time_index(self, index: TimeIndexCheck) -> None:
        exempt = self.facts.exemptions
        wrong = [entry for entry in index.finish() if not exempt.cover(None, entry.offset)]
        for entry in wrong:
            self._add_wrong_entry(Part.TIME_INDEX, entry)
        latest = self.facts.max_timestamp
        if wrong or exempt.positions or latest in (NO_TIMESTAMP, index.last_timestamp):
            return
        message = f"it ends with timestamp {index.last_timestamp}, the log with {latest}: its end is missing"
        self.findings.add("index-damaged", Part.TIME_INDEX, message, position=self._parts[Part.TIME_INDEX])

    def _report_transactions(self, markers: list[AbortMarker]) -> None:
        entries = self._decode(Part.TRANSACTION_INDEX, "index-damaged", read_transaction_index)
        if entries is None and Part.TRANSACTION_INDEX in self._parts:
            return
        by_end = {(marker.producer_id, marker.offset): marker for marker in markers}
        for number, entry in enumerate(entries or ()):
            marker = by_end.pop((entry.producer_id, entry.last_offset), None)
            if self.facts.exemptions.cover(None, entry.last_offset):
                continue
            if marker is None or not self._describes(entry, marker):
                message = f"its entry for producer {entry.producer_id} describes no transaction that the log aborts"
                position, offsets = number * _TRANSACTION_ENTRY_BYTES, (entry.first_offset, entry.last_offset)
                self.findings.add("index-damaged", Part.TRANSACTION_INDEX, message, position=position, offsets=offsets)
                return
        missing = [marker for marker in by_end.values() if marker.first_offset is not None]
        if missing:
            first = missing[0]
            message = f"{len(missing)} aborted transactions have no entry, first that of producer {first.producer_id}"
            self.findings.add(
                "transaction-index-missing",
                Part.TRANSACTION_INDEX,
                message,
                position=first.position,
                offsets=(first.offset, first.offset),
            )

    def _describes(self, entry: AbortedTransaction, marker: AbortMarker) -> bool:
        """Offsets before the segment cannot be held against it: the transaction, or another, may have begun there."""
        start = self._metadata.start_offset
        first_fits = entry.first_offset < start or entry.first_offset == marker.first_offset
        stable_fits = entry.last_stable_offset < start or entry.last_stable_offset == marker.stable_offset
        return entry.first_offset <= entry.last_offset and first_fits and stable_fits

"""Reads one segment from the remote store, as deep as asked, and compares it with its metadata."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.index_columns import OffsetIndexColumns, TimeIndexColumns
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.producer_snapshot import ProducerEntry, read_producer_snapshot
from tieredctl.formats.segment_parts import (
    leader_epoch_entries,
    offset_index_entries,
    time_index_entries,
    transaction_index_entries,
)
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.verification.index_check import OffsetIndexCheck, TimeIndexCheck, UnindexedTail
from tieredctl.ops.verification.log_check import LogCheck, LogFacts
from tieredctl.ops.verification.log_findings import (
    may_be_cut,
    report_hole,
    report_last_time,
    report_log,
    report_missing_end,
    report_missing_latest,
    report_size,
    report_transactions,
    report_wrong_entries,
)
from tieredctl.ops.verification.opened_segment import STREAM_BYTES, OpenedSegment
from tieredctl.ops.verification.other_forms import report_missing
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask, report_unread
from tieredctl.ops.verification.small_parts import (
    ProducersCheck,
    report_leader_epochs,
    report_producers,
    sizes_are_possible,
)
from tieredctl.ops.verification.transactions import AbortedTransactions, TransactionIndexCheck
from tieredctl.ports.layout import Part, possible_objects
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.read_only_store import AsListed
from tieredctl.ports.segment_objects import SegmentObjects

_MOST_READS = 3


def check_segment(task: SegmentTask, store: ObjectStore, layout: SegmentObjects) -> SegmentReport:
    """Everything that is wrong with a segment's objects. A store that fails, or a segment that cannot be decrypted, is
    a finding, never an exception: the other segments are still checked. A segment whose headers look wrong is read in
    full, to find what is wrong.

    The listing's word on sizes is taken as long as nothing looks wrong. What looks damaged is read again, since bytes
    may be altered in transit too: only what two reads in a row agree on is damage. An object that was listed and has
    gone since is missing.
    """
    reports = [_read(task, AsListed.of(store, task.listed.values()), layout)]
    if task.listed and _lacks_an_object(reports[0]):
        return _without_missing(task, store.reconnected(), layout)
    while _looks_damaged(reports[-1]) and not _agree(reports) and len(reports) < _MOST_READS:
        store = store.reconnected()
        reports.append(_read(task, store, layout))
    bytes_read = sum(report.bytes_read for report in reports)
    judged = reports[1:] if len(reports) > 1 and _is_listed_wrong(task, store) else reports
    return replace(reports[-1], bytes_read=bytes_read, findings=_believed(judged, task, layout))


def _is_listed_wrong(task: SegmentTask, store: ObjectStore) -> bool:
    """Whether an object has another size than it was listed with: then what differs between a read by the listing's
    sizes and later ones was not altered in transit."""
    try:
        return any((now := store.head(one.key)) is None or now.size != one.size for one in task.listed.values())
    except TieredctlError:
        return False


def _lacks_an_object(report: SegmentReport) -> bool:
    return any(one.code is ErrorCode.OBJECT_MISSING for one in report.unread)


def _without_missing(task: SegmentTask, store: ObjectStore, layout: SegmentObjects) -> SegmentReport:
    """What is left of a segment that lost an object since it was listed."""
    report = check_segment(replace(task, listed={}), store, layout)
    keys = possible_objects(layout, task.metadata)
    findings = SegmentFindings(task.metadata, keys, list(report.findings), list(report.unread))
    for part, stored in task.listed.items():
        try:
            if store.head(stored.key) is None:
                report_missing(part, findings)
        except TieredctlError as error:
            report_unread(error, part, findings)
    return replace(report, findings=tuple(findings.found), unread=tuple(findings.unread))


def _looks_damaged(report: SegmentReport) -> bool:
    return any(finding.severity > Severity.INFO and not finding.kind.incomplete for finding in report.findings)


def _agree(reports: list[SegmentReport]) -> bool:
    return len(reports) > 1 and reports[-1].findings == reports[-2].findings


def _believed(reports: list[SegmentReport], task: SegmentTask, layout: SegmentObjects) -> tuple[Finding, ...]:
    """The last read's result, if it is sound or equal to the one before; else the results of both."""
    *_, last = reports
    if all(report.findings == last.findings for report in reports):
        return last.findings
    findings = SegmentFindings(task.metadata, layout.promised_objects(task.metadata), list(last.findings))
    if not _looks_damaged(last) or _agree(reports):
        message = "an earlier read returned different bytes: the store's answers are altered in transit"
        findings.add(FindingCode.ALTERED_IN_TRANSIT, Part.LOG, message)
    else:
        findings.found = [finding for finding in last.findings if finding in reports[-2].findings]
        findings.add(FindingCode.UNREADABLE, Part.LOG, f"{len(reports)} reads gave different bytes each time")
    return tuple(findings.found)


def _read(task: SegmentTask, store: ObjectStore, layout: SegmentObjects) -> SegmentReport:
    metadata = task.metadata
    keys = possible_objects(layout, metadata)
    segment = OpenedSegment(task, layout.open_segment(store, metadata), SegmentFindings(metadata, keys))
    try:
        segment.look()
        if task.level is Level.HEADERS:
            if ends_are_sound(segment):
                return segment.report()
            segment.forget()
        check_everything(segment)
    except TieredctlError as error:
        report_unread(error, Part.LOG if segment.is_open else Part.MANIFEST, segment.findings)
    return segment.report()


def check_everything(segment: OpenedSegment) -> None:
    """Compares every part with the metadata, and the indexes with the log."""
    leader_epochs = segment.decode(Part.LEADER_EPOCH, leader_epoch_entries)
    if leader_epochs is not None:
        report_leader_epochs(leader_epochs, segment.findings)
    producers = segment.decode(Part.PRODUCER_SNAPSHOT, read_producer_snapshot)
    offset_entries = segment.decode(Part.OFFSET_INDEX, offset_index_entries)
    time_entries = segment.decode(Part.TIME_INDEX, time_index_entries)
    aborted = segment.decode(Part.TRANSACTION_INDEX, transaction_index_entries)
    if segment.size(Part.LOG) is None:
        if producers is not None:
            report_producers(producers, None, segment.findings)
        return
    base, interval = segment.metadata.start_offset, segment.task.index_interval_bytes
    offset_index = OffsetIndexCheck(offset_entries, base) if offset_entries is not None else None
    time_index = TimeIndexCheck(time_entries, base) if time_entries is not None else None
    tail = UnindexedTail(offset_index.last_position, offset_index.last_offset, interval) if offset_index else None
    producers_check = ProducersCheck(base, segment.metadata.end_offset)
    check = LogCheck(segment.metadata, offset_index, time_index, tail, producers=producers_check)
    facts = check.run(segment.log(), segment.log_size)
    segment.count(facts)
    _report_log(facts, segment)
    if producers is not None and report_producers(
        producers, None if _lacks_batches(facts, segment) else producers_check, segment.findings
    ):
        producers = None
    times_are_right = bool(
        time_index and time_entries is not None and _report_time_index(time_index, time_entries, facts, segment)
    )
    if offset_index and tail:
        witness = time_index if times_are_right else None
        _report_offset_index(offset_index, tail, witness, facts, segment)
    if aborted is not None or segment.is_known_to_lack(Part.TRANSACTION_INDEX):
        _report_transactions(check.transactions, aborted or [], producers, facts, segment)


def _report_log(facts: LogFacts, segment: OpenedSegment) -> None:
    size = segment.size(Part.LOG) or 0
    report_size(size, facts, segment.findings)
    report_log(size, facts, segment.findings)
    report_hole(size, facts, segment.findings)


def _lacks_batches(facts: LogFacts, segment: OpenedSegment) -> bool:
    """Whether batches are missing, or their offsets untrustworthy, although no stretch is damaged."""
    metadata = segment.metadata
    return bool(facts.misplaced) or segment.log_size < (metadata.known_size or 0) or may_be_cut(facts, metadata)


def _report_time_index(
    index: TimeIndexCheck, entries: TimeIndexColumns, facts: LogFacts, segment: OpenedSegment
) -> bool:
    """Whether it is right by the log, or by the metadata where the log is damaged."""
    verdict = index.finish(facts.exemptions)
    report_wrong_entries(Part.TIME_INDEX, verdict, segment.findings)
    if verdict.altered or report_missing_latest(index, facts, segment.size(Part.TIME_INDEX) or 0, segment.findings):
        return False
    claim_is_right = facts.max_timestamp <= segment.metadata.max_timestamp_ms
    return not (facts.exemptions.positions and claim_is_right and report_last_time(entries, segment.findings))


def _report_offset_index(
    index: OffsetIndexCheck,
    tail: UnindexedTail,
    witness: TimeIndexCheck | None,
    facts: LogFacts,
    segment: OpenedSegment,
) -> None:
    verdict = index.finish(facts.exemptions)
    report_wrong_entries(Part.OFFSET_INDEX, verdict, segment.findings)
    if not verdict.altered:
        leader_changed = segment.metadata.segment_leader_epochs[-1][1] > tail.last_offset
        if tail.is_cut(witness, leader_changed=leader_changed, by_append=verdict.harmless is not None):
            report_missing_end(tail, segment.size(Part.OFFSET_INDEX) or 0, segment.findings)


def _report_transactions(
    transactions: AbortedTransactions,
    aborted: list[AbortedTransaction],
    producers: list[ProducerEntry] | None,
    facts: LogFacts,
    segment: OpenedSegment,
) -> None:
    begun = [entry.current_txn_first_offset for entry in producers] if producers is not None else None
    check = TransactionIndexCheck(segment.metadata.start_offset, transactions, begun, facts.exemptions)
    report_transactions(check, aborted, segment.size(Part.TRANSACTION_INDEX), segment.findings)


_NO_ENTRIES = offset_index_entries(b"")


def ends_are_sound(segment: OpenedSegment) -> bool:
    """Reads the log up to where the first entry of the offset index points, and from where the last does. If that finds
    anything, so little of the segment cannot show which part is to blame."""
    offset_entries = segment.decode(Part.OFFSET_INDEX, offset_index_entries)
    time_entries = segment.decode(Part.TIME_INDEX, time_index_entries)
    if segment.size(Part.LOG) is None or not sizes_are_possible(segment.size):
        return False
    entries = _NO_ENTRIES if offset_entries is None else offset_entries
    tail_from = int(entries.positions[-1]) if len(entries.positions) else 0
    if not _rise(entries, time_entries) or not 0 <= tail_from < segment.log_size:
        return False
    whole = not tail_from or _check_first_batches(entries, int(entries.positions[0]), segment)
    _check_last_batches(entries, tail_from, time_entries, segment)
    return whole and not segment.findings.found


def _rise(entries: OffsetIndexColumns, time_entries: TimeIndexColumns | None) -> bool:
    """Whether a broker could have made these entries one after the other."""
    columns = [entries.relative_offsets, entries.positions]
    if time_entries is not None:
        columns.append(time_entries.timestamps)
        if (np.diff(time_entries.relative_offsets, prepend=0) < 0).any():
            return False
    return all((np.diff(column, prepend=-1) > 0).all() for column in columns)


def _check_first_batches(entries: OffsetIndexColumns, end: int, segment: OpenedSegment) -> bool:
    """Whether they begin with the segment's first offset and, as far as they are read, end at byte `end` of the log."""
    metadata = segment.metadata
    size = min(end, STREAM_BYTES)
    check = LogCheck(metadata, within=(metadata.start_offset, metadata.start_offset + int(entries.relative_offsets[0])))
    facts = check.run(segment.log_range(0, size), size)
    segment.count(facts)
    report_log(size, facts, segment.findings)
    begins_late = facts.first_hole is not None and facts.first_hole[0] == metadata.start_offset
    return not begins_late and (facts.torn_at is None or size < end)


def _check_last_batches(
    entries: OffsetIndexColumns, tail_from: int, time_entries: TimeIndexColumns | None, segment: OpenedSegment
) -> None:
    metadata = segment.metadata
    before = entries.relative_offsets[-2:-1]
    first = metadata.start_offset + (int(before[0]) + 1 if tail_from and len(before) else 0)
    last_entry = OffsetIndexCheck(entries.last(), metadata.start_offset, first_entry=len(entries.positions) - 1)
    last_time = _last_time(time_entries, segment)
    tail = UnindexedTail(last_entry.last_position, last_entry.last_offset, segment.task.index_interval_bytes)
    check = LogCheck(
        metadata, last_entry, last_time, tail, first_position=tail_from, within=(first, metadata.end_offset)
    )
    facts = check.run(segment.log_range(tail_from, segment.log_size), segment.log_size - tail_from)
    segment.count(facts)
    size = segment.size(Part.LOG) or 0
    report_size(size, facts, segment.findings)
    report_log(size, facts, segment.findings)
    tail_is_known = _report_sampled_offset_index(last_entry, tail, time_entries, facts, segment)
    if time_entries is not None and last_time is not None and tail_is_known:
        read_from = last_entry.last_offset if tail_from else None
        _report_sampled_time_index(time_entries, last_time, read_from, facts, segment)


def _last_time(time_entries: TimeIndexColumns | None, segment: OpenedSegment) -> TimeIndexCheck | None:
    if time_entries is None:
        return None
    number = len(time_entries.timestamps) - 1
    return TimeIndexCheck(time_entries.last(), segment.metadata.start_offset, first_entry=number)


def _report_sampled_offset_index(
    last_entry: OffsetIndexCheck,
    tail: UnindexedTail,
    time_entries: TimeIndexColumns | None,
    facts: LogFacts,
    segment: OpenedSegment,
) -> bool:
    """Whether its last entry is right, so that the offsets of the last batches are known."""
    index_size = segment.size(Part.OFFSET_INDEX)
    if index_size is None:
        return True
    verdict = last_entry.finish(facts.exemptions)
    report_wrong_entries(Part.OFFSET_INDEX, verdict, segment.findings)
    if verdict.altered:
        return False
    metadata = segment.metadata
    witness = TimeIndexCheck(time_entries, metadata.start_offset) if time_entries is not None else None
    leader_changed = metadata.segment_leader_epochs[-1][1] > tail.last_offset
    if tail.is_cut(witness, leader_changed=leader_changed, by_append=verdict.harmless is not None):
        report_missing_end(tail, index_size, segment.findings)
    return True


def _report_sampled_time_index(
    entries: TimeIndexColumns, last: TimeIndexCheck, read_from: int | None, facts: LogFacts, segment: OpenedSegment
) -> None:
    """Compares the last entry with its batch if that was read (from offset `read_from` on; None: all were), else with
    the metadata."""
    offset, timestamp = last.last_offset, last.last_timestamp
    was_read = read_from is None or (offset is not None and offset >= read_from)
    verdict = last.finish(facts.exemptions)
    if was_read:
        report_wrong_entries(Part.TIME_INDEX, verdict, segment.findings)
    if timestamp is None or facts.max_timestamp > timestamp:
        report_missing_latest(last, facts, segment.size(Part.TIME_INDEX) or 0, segment.findings)
    elif not was_read:
        report_last_time(entries, segment.findings)

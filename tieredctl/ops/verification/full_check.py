"""Level `full`: every byte of a segment's log, and every entry of its other parts."""

from __future__ import annotations

from tieredctl.formats.index_columns import TimeIndexColumns
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.producer_snapshot import ProducerEntry, read_producer_snapshot
from tieredctl.formats.segment_parts import (
    leader_epoch_entries,
    offset_index_entries,
    time_index_entries,
    transaction_index_entries,
)
from tieredctl.ops.verification.index_check import OffsetIndexCheck, TimeIndexCheck
from tieredctl.ops.verification.index_findings import (
    report_last_time,
    report_missing_end,
    report_missing_latest,
    report_transactions,
    report_wrong_entries,
)
from tieredctl.ops.verification.log_check import LogCheck, LogFacts
from tieredctl.ops.verification.log_findings import may_be_cut, report_hole, report_log, report_size
from tieredctl.ops.verification.opened_segment import OpenedSegment
from tieredctl.ops.verification.producers_check import ProducersCheck
from tieredctl.ops.verification.small_parts import report_leader_epochs, report_producers
from tieredctl.ops.verification.transactions import AbortedTransactions, TransactionIndexCheck
from tieredctl.ops.verification.unindexed_tail import UnindexedTail
from tieredctl.ports.layout import Part


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

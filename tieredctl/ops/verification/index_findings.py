"""What is wrong with a segment's indexes, as findings."""

from __future__ import annotations

from tieredctl.formats.index_columns import TimeIndexColumns
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.model.quantities import size_text
from tieredctl.ops.verification.index_check import (
    TIME_ENTRY_BYTES,
    IndexVerdict,
    TimeIndexCheck,
    UnindexedTail,
    WrongEntries,
)
from tieredctl.ops.verification.log_check import NO_TIMESTAMP, LogFacts
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.transactions import TRANSACTION_ENTRY_BYTES, TransactionIndexCheck
from tieredctl.ports.layout import Part


def report_wrong_entries(part: Part, verdict: IndexVerdict, findings: SegmentFindings) -> None:
    """The first of an index's entries that do not match the log, and how many there are.

    A single harmless one in a segment that Kafka 4 copied is a warning: earlier releases wrote such entries, and a
    segment with several is theirs.
    """
    if verdict.altered:
        _report_entries(part, verdict.altered, None, findings)
    elif verdict.harmless and verdict.harmless.count == 1 and findings.metadata.txn_idx_empty:
        _report_entries(part, verdict.harmless, Severity.WARNING, findings)


def report_missing_end(tail: UnindexedTail, index_size: int, findings: SegmentFindings) -> None:
    """An offset index of `index_size` bytes that stops too early."""
    message = f"it ends {size_text(tail.unindexed_bytes)} before the last batch: entries are missing"
    findings.add(FindingCode.INDEX_DAMAGED, Part.OFFSET_INDEX, message, position=index_size)


def report_missing_latest(index: TimeIndexCheck, facts: LogFacts, index_size: int, findings: SegmentFindings) -> bool:
    """A time index of `index_size` bytes that does not end with the greatest timestamp. Returns whether it is so."""
    latest, named = _latest(facts, findings), index.last_timestamp
    if latest in (NO_TIMESTAMP, named) or (facts.exemptions.positions and named is not None and named > latest):
        return False
    message = f"it ends with timestamp {named}, but the log with {latest}: entries are missing"
    findings.add(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, message, position=index_size)
    return True


def _latest(facts: LogFacts, findings: SegmentFindings) -> int:
    """The greatest timestamp of the log. For damaged batches the metadata has it, since a broker takes it from the last
    entry of the time index; but not where the sound batches have no timestamps."""
    has_timestamps = facts.max_timestamp != NO_TIMESTAMP or not facts.batches
    if not facts.exemptions.positions or not has_timestamps:
        return facts.max_timestamp
    return max(facts.max_timestamp, findings.metadata.max_timestamp_ms)


def report_last_time(times: TimeIndexColumns, findings: SegmentFindings) -> bool:
    """The last entry of a time index whose batch was not read, or is damaged, compared with the metadata alone: a
    broker takes both from one place. Returns whether there was a finding."""
    if not len(times.timestamps):
        return False
    timestamp, offset = int(times.timestamps[-1]), findings.metadata.start_offset + int(times.relative_offsets[-1])
    claimed = findings.metadata.max_timestamp_ms
    if offset < findings.metadata.start_offset or timestamp != claimed:
        message = f"its last entry has timestamp {timestamp} at offset {offset}, but the metadata has {claimed}"
        position = (len(times.timestamps) - 1) * TIME_ENTRY_BYTES
        findings.add(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, message, position=position, offsets=(offset, offset))
        return True
    return False


def report_transactions(
    check: TransactionIndexCheck, entries: list[AbortedTransaction], index_size: int | None, findings: SegmentFindings
) -> None:
    """The first entry that is wrong, else the transactions that have none. `index_size` is None without an index."""
    wrong = check.first_wrong(entries)
    if wrong is not None:
        entry = entries[wrong]
        message = f"its entry for producer {entry.producer_id} matches no aborted transaction of the log"
        position, offsets = wrong * TRANSACTION_ENTRY_BYTES, (entry.first_offset, entry.last_offset)
        findings.add(FindingCode.INDEX_DAMAGED, Part.TRANSACTION_INDEX, message, position=position, offsets=offsets)
        return
    missing = check.without_entry()
    if missing:
        first = missing[0]
        transactions = counted(len(missing), "aborted transaction has", "aborted transactions have")
        message = f"{transactions} no entry, first that of producer {first.producer_id}"
        findings.add(
            FindingCode.TRANSACTION_INDEX_MISSING,
            Part.TRANSACTION_INDEX,
            message,
            position=index_size,
            offsets=(first.first_offset if first.first_offset is not None else first.offset, missing[-1].offset),
            markerPosition=first.position,
        )


def _report_entries(part: Part, wrong: WrongEntries, severity: Severity | None, findings: SegmentFindings) -> None:
    message = f"its entry for offset {wrong.offset} is wrong: {wrong.reason}"
    if wrong.count > 1:
        message += f"; {counted(wrong.count - 1, 'more is', 'more are')} wrong"
    findings.add(
        FindingCode.INDEX_DAMAGED,
        part,
        message,
        position=wrong.index_position,
        offsets=(wrong.offset, wrong.offset),
        severity=severity,
        entries=wrong.count,
    )

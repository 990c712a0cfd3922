"""The result of reading a log, as findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tieredctl.formats.index_columns import TimeIndexColumns
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.model.quantities import size_text
from tieredctl.ops.verification.index_check import (
    TIME_ENTRY_BYTES,
    IndexVerdict,
    TimeIndexCheck,
    UnindexedTail,
    WrongEntries,
)
from tieredctl.ops.verification.log_check import NO_TIMESTAMP, CorruptBatch, LogFacts, Misplaced
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.transactions import TRANSACTION_ENTRY_BYTES, TransactionIndexCheck
from tieredctl.ports.layout import Part

_MOST_OF_A_KIND = 20
"""At most this many findings of a kind for a log's batches; the last sums up the rest."""


def report_log(size: int, facts: LogFacts, findings: SegmentFindings) -> None:
    """Everything that is wrong with the batches of a log of `size` bytes; `report_size` covers a wrong size."""
    _report_corrupt(facts.corrupt, findings)
    end = findings.metadata.end_offset
    if facts.torn_at is not None and findings.metadata.known_size in (None, size):
        offsets = (_behind(facts, findings), end)
        findings.add(
            FindingCode.BATCH_CORRUPT,
            Part.LOG,
            "the last batch is incomplete",
            position=facts.torn_at,
            offsets=offsets,
        )
    _report_misplaced(
        FindingCode.OFFSETS_OUT_OF_ORDER, [batch for batch in facts.misplaced if not batch.outside], findings
    )
    _report_misplaced(
        FindingCode.RECORDS_OUTSIDE_SEGMENT, [batch for batch in facts.misplaced if batch.outside], findings
    )
    _report_epochs(facts, findings)
    if facts.latest_beyond_claim is not None:
        claimed = findings.metadata.max_timestamp_ms
        message = f"timestamps reach {facts.max_timestamp}, but the metadata has {claimed}"
        findings.add(FindingCode.TIMESTAMP_BEYOND_CLAIM, Part.LOG, message, position=facts.latest_beyond_claim)


def report_size(size: int, facts: LogFacts, findings: SegmentFindings) -> None:
    """Reports a log that is not as long as the metadata says; where it does not say, one that may be longer."""
    metadata = findings.metadata
    claimed = metadata.known_size
    if claimed is None:
        if may_be_cut(facts, metadata):
            offsets = (_behind(facts, findings), metadata.end_offset)
            lacks = f"no batch holds offsets {offsets[0]} to {offsets[1]}"
            message = f"{lacks}: the log may lack its end, since its size in the metadata is unknown"
            findings.add(FindingCode.OFFSET_SHORTFALL, Part.LOG, message, offsets=offsets, severity=Severity.WARNING)
    elif size != claimed:
        findings.add(
            FindingCode.SIZE_MISMATCH,
            Part.LOG,
            f"the log has {size} bytes, but the metadata has {claimed}",
            position=min(size, claimed),
            offsets=(_behind(facts, findings), metadata.end_offset) if size < claimed else None,
        )


def may_be_cut(facts: LogFacts, metadata: RemoteLogSegmentMetadata) -> bool:
    """Whether a log of unknown size, without damage, ends before its segment does."""
    return metadata.known_size is None and not facts.exemptions.positions and facts.last_offset < metadata.end_offset


def report_hole(size: int, facts: LogFacts, findings: SegmentFindings) -> None:
    """Reports offsets that a log without damage lacks, though its segment claims them."""
    metadata = findings.metadata
    sound = not facts.exemptions.positions and metadata.known_size in (None, size)
    if sound and facts.first_hole:
        first, last = facts.first_hole
        if last == metadata.end_offset and may_be_cut(facts, metadata):
            return  # `report_size` does
        message = f"no batch holds offsets {first} to {last}, as after compaction or an aborted transaction"
        findings.add(FindingCode.OFFSET_SHORTFALL, Part.LOG, message, offsets=facts.first_hole)


def _behind(facts: LogFacts, findings: SegmentFindings) -> int:
    """The first offset that is lost where the end of a log is."""
    metadata = findings.metadata
    return min(max(facts.last_offset + 1, metadata.start_offset), metadata.end_offset)


def _report_corrupt(corrupt: Sequence[CorruptBatch], findings: SegmentFindings) -> None:
    for number, batch in enumerate(corrupt[:_MOST_OF_A_KIND]):
        message, last_offset = batch.reason, batch.last_offset
        if number == _MOST_OF_A_KIND - 1 and len(corrupt) > _MOST_OF_A_KIND:
            rest = len(corrupt) - _MOST_OF_A_KIND
            message += (
                f"; {counted(rest, 'more stretch is', 'more stretches are')} damaged, up to byte {corrupt[-1].position}"
            )
            last_offset = corrupt[-1].last_offset
        offsets = (batch.first_offset, last_offset)
        stored: dict[str, Any] = {"storedBytes": [batch.stored[0], batch.stored[1] - 1]} if batch.stored else {}
        findings.add(FindingCode.BATCH_CORRUPT, Part.LOG, message, position=batch.position, offsets=offsets, **stored)


def _report_misplaced(code: FindingCode, misplaced: Sequence[Misplaced], findings: SegmentFindings) -> None:
    metadata = findings.metadata
    for number, batch in enumerate(misplaced[:_MOST_OF_A_KIND]):
        belongs = f"where {batch.first_expected} or above is expected"
        if batch.outside:
            belongs = f"but the segment {metadata.start_offset} to {metadata.end_offset}"
        message = f"a batch claims offsets {batch.base_offset} to {batch.last_offset}, {belongs}"
        last_expected = batch.last_expected
        if number == _MOST_OF_A_KIND - 1 and len(misplaced) > _MOST_OF_A_KIND:
            rest = len(misplaced) - _MOST_OF_A_KIND
            message += f"; {counted(rest, 'more batch is', 'more batches are')} out of place"
            last_expected = None
        offsets = (batch.first_expected, metadata.end_offset if last_expected is None else last_expected)
        findings.add(code, Part.LOG, message, position=batch.position, offsets=offsets)


def _report_epochs(facts: LogFacts, findings: SegmentFindings) -> None:
    misplaced = {batch.position for batch in facts.misplaced}
    wrong = [batch for batch in facts.wrong_epochs if batch[0] not in misplaced]
    if wrong:
        position, offset, epoch = wrong[0]
        message = f"the batch has leader epoch {epoch}, which the metadata does not give to offset {offset}"
        findings.add(FindingCode.EPOCH_MISMATCH, Part.LOG, message, position=position, offsets=(offset, offset))


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

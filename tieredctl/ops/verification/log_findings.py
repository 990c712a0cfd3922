"""The result of reading a log, as findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.ops.verification.log_check import CorruptBatch, LogFacts, Misplaced
from tieredctl.ops.verification.report import SegmentFindings
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

"""Level `headers`: a segment's first batches and its last, and the ends of its indexes."""

from __future__ import annotations

from tieredctl.formats.index_columns import OffsetIndexColumns
from tieredctl.layouts.protocol import Part
from tieredctl.ops.verification.index_check import IndexVerdict, OffsetIndexCheck, TimeIndexCheck
from tieredctl.ops.verification.index_entries import offset_index_entries, time_index_entries
from tieredctl.ops.verification.index_findings import report_last_time, report_missing_end, report_wrong_entries
from tieredctl.ops.verification.log_check import LogCheck
from tieredctl.ops.verification.log_findings import report_log, report_size
from tieredctl.ops.verification.opened_segment import STREAM_BYTES, OpenedSegment
from tieredctl.ops.verification.unindexed_tail import UnindexedTail

_NO_ENTRIES = offset_index_entries(b"")


def check_ends(segment: OpenedSegment) -> None:
    """Reads the log up to where the first entry of the offset index points, and from where the last does."""
    offset_entries = segment.decode(Part.OFFSET_INDEX, offset_index_entries)
    time_entries = segment.decode(Part.TIME_INDEX, time_index_entries)
    if time_entries is not None:
        report_last_time(time_entries, segment.findings)
    if segment.size(Part.LOG) is None:
        return
    base = segment.metadata.start_offset
    witness = TimeIndexCheck(time_entries, base) if time_entries is not None else None
    entries = _NO_ENTRIES if offset_entries is None else offset_entries
    tail_from = int(entries.positions[-1]) if len(entries.positions) else 0
    if not 0 < tail_from < segment.log_size:
        _check_last_batches(entries, 0, witness, segment)
        return
    _check_first_batches(entries, min(int(entries.positions[0]), tail_from), segment)
    _check_last_batches(entries, tail_from, witness, segment)


def _check_first_batches(entries: OffsetIndexColumns, end: int, segment: OpenedSegment) -> None:
    """A batch that is cut off at byte `end` of the log, which the index names, is not held against the log."""
    metadata = segment.metadata
    size = min(end, STREAM_BYTES)
    check = LogCheck(metadata, within=(metadata.start_offset, metadata.start_offset + int(entries.relative_offsets[0])))
    facts = check.run(segment.log_range(0, size), size)
    segment.count(facts)
    report_log(size, facts, segment.findings)


def _check_last_batches(
    entries: OffsetIndexColumns, tail_from: int, witness: TimeIndexCheck | None, segment: OpenedSegment
) -> None:
    metadata = segment.metadata
    before = entries.relative_offsets[-2:-1]
    first = metadata.start_offset + (int(before[0]) + 1 if tail_from and len(before) else 0)
    last_entry = OffsetIndexCheck(entries.last(), metadata.start_offset, first_entry=len(entries.positions) - 1)
    tail = UnindexedTail(last_entry.last_position, last_entry.last_offset, segment.task.index_interval_bytes)
    check = LogCheck(metadata, last_entry, None, tail, first_position=tail_from, within=(first, metadata.end_offset))
    facts = check.run(segment.log_range(tail_from, segment.log_size), segment.log_size - tail_from)
    segment.count(facts)
    size, index_size = segment.size(Part.LOG) or 0, segment.size(Part.OFFSET_INDEX)
    report_size(size, facts, segment.findings)
    report_log(size, facts, segment.findings)
    if index_size is None:
        return
    verdict = last_entry.finish(facts.exemptions)
    report_wrong_entries(Part.OFFSET_INDEX, IndexVerdict(verdict.altered, None), segment.findings)
    if not verdict.altered:
        leader_changed = metadata.segment_leader_epochs[-1][1] > tail.last_offset
        judged = tail.judge(witness, leader_changed=leader_changed, by_append=verdict.harmless is not None)
        report_missing_end(tail, judged, index_size, segment.findings)

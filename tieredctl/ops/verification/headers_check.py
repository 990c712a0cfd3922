"""Level `headers`: a segment's first batches and its last, its indexes, and the sizes of the other parts."""

from __future__ import annotations

import numpy as np

from tieredctl.formats.index_columns import OffsetIndexColumns, TimeIndexColumns
from tieredctl.formats.segment_parts import offset_index_entries, time_index_entries
from tieredctl.ops.verification.index_check import OffsetIndexCheck, TimeIndexCheck
from tieredctl.ops.verification.index_findings import (
    report_last_time,
    report_missing_end,
    report_missing_latest,
    report_wrong_entries,
)
from tieredctl.ops.verification.log_check import LogCheck, LogFacts
from tieredctl.ops.verification.log_findings import report_log, report_size
from tieredctl.ops.verification.opened_segment import STREAM_BYTES, OpenedSegment
from tieredctl.ops.verification.small_parts import sizes_are_possible
from tieredctl.ops.verification.unindexed_tail import UnindexedTail
from tieredctl.ports.layout import Part

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
    tail_is_known = _report_offset_index(last_entry, tail, time_entries, facts, segment)
    if time_entries is not None and last_time is not None and tail_is_known:
        read_from = last_entry.last_offset if tail_from else None
        _report_time_index(time_entries, last_time, read_from, facts, segment)


def _last_time(time_entries: TimeIndexColumns | None, segment: OpenedSegment) -> TimeIndexCheck | None:
    if time_entries is None:
        return None
    number = len(time_entries.timestamps) - 1
    return TimeIndexCheck(time_entries.last(), segment.metadata.start_offset, first_entry=number)


def _report_offset_index(
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


def _report_time_index(
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

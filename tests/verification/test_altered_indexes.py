"""One altered bit in the files next to a log.

What an alteration does to look-ups is found by looking up, not by the check's own rules. Whatever sends one look-up to
the wrong place is critical, at the entry. What no look-up notices may be one of these, and then it cannot be told from
what a broker writes:

- an offset index entry that names the end of a later batch before the next entry, as 3.9 and earlier write for a
  follower's append, or the first offset of its batch, as releases before 2 do;
- a time index entry that names another offset of the same batch, as releases before 3.8 do.

In a segment of which Kafka 4 says that it has no transaction index, a single such entry is a warning, since there only
an upgrade explains it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import pytest

from tests.faults.cluster import checked
from tests.faults.segment_writer import WrittenSegment
from tests.faults.segments_made import several_epochs, transactions
from tests.shares import divided
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.segment_parts import offset_index_entries, time_index_entries
from tieredctl.model.findings import Finding, Severity
from tieredctl.ports.layout import Part


def each_flip(segment: WrittenSegment, part: Part) -> Iterator[tuple[int, bytes, tuple[Finding, ...]]]:
    """Each byte whose bits were flipped one by one, what the part then was, and what was found."""
    for position in divided(range(len(segment.parts[part]))):
        for bit in range(8):
            altered = bytearray(segment.parts[part])
            altered[position] ^= 1 << bit
            yield position, bytes(altered), checked(segment, {part: bytes(altered)}).findings


def misleads_by_offset(segment: WrittenSegment, index: bytes) -> bool:
    """Whether some offset is looked for where it cannot be found: not at a batch, or after the one that holds it."""
    entries = offset_index_entries(index)
    offsets = [0, *(entries.relative_offsets + segment.metadata.start_offset).tolist()]
    positions = [0, *entries.positions.tolist()]
    if offsets != sorted(offsets):
        return True
    begins = {batch.position for batch in segment.batches}
    for batch in segment.batches:
        for offset in range(batch.header.base_offset, batch.header.last_offset + 1):
            position = positions[bisect_right(offsets, offset) - 1]
            if position not in begins or position > batch.position:
                return True
    return False


def misleads_by_time(segment: WrittenSegment, index: bytes) -> bool:
    """Whether the look-up of some timestamp begins after the first batch that reaches it."""
    entries = time_index_entries(index)
    timestamps = [-1, *entries.timestamps.tolist()]
    offsets = [segment.metadata.start_offset, *(entries.relative_offsets + segment.metadata.start_offset).tolist()]
    if timestamps != sorted(timestamps) or max(timestamps) != segment.metadata.max_timestamp_ms:
        return True
    for batch in segment.batches:
        for target in (batch.header.base_timestamp, batch.header.max_timestamp):
            if offsets[bisect_right(timestamps, target) - 1] > batch.header.last_offset:
                return True
    return False


MISLEADS = {Part.OFFSET_INDEX: (8, misleads_by_offset), Part.TIME_INDEX: (12, misleads_by_time)}


@pytest.mark.parametrize("part", MISLEADS)
def test_an_index(segment: WrittenSegment, part: Part) -> None:
    entry_bytes, misleads = MISLEADS[part]
    for position, altered, findings in each_flip(segment, part):
        if misleads(segment, altered):
            assert [finding.severity for finding in findings] == [Severity.CRITICAL], (position, findings)
        elif segment.metadata.txn_idx_empty:
            assert len(findings) == 1, position
        for finding in findings:
            assert (finding.code, finding.evidence["part"]) == ("index-damaged", part.value)
            assert finding.evidence["position"] == position // entry_bytes * entry_bytes


def test_a_transaction_index() -> None:
    """Not found is what only the segment before could tell: a first offset, or a last stable one, that becomes lower
    than the segment's start while the transaction, or another one, may have begun there."""
    segment = transactions()
    start = segment.metadata.start_offset
    silent = []
    for position, altered, findings in each_flip(segment, Part.TRANSACTION_INDEX):
        assert all(finding.code == "index-damaged" for finding in findings)
        assert all(finding.evidence["position"] == position // 34 * 34 for finding in findings), (position, findings)
        if not findings:
            silent.append((position, altered))
    for position, altered in silent:
        entry = altered[position // 34 * 34 :]
        field = (position % 34 - 2) // 8
        assert field in (1, 3)
        assert 0 <= int.from_bytes(entry[2 + field * 8 : 10 + field * 8], signed=True) < start
    assert len(silent) < 15


def test_a_producer_snapshot(segment: WrittenSegment) -> None:
    for position, _, findings in each_flip(segment, Part.PRODUCER_SNAPSHOT):
        (finding,) = findings
        assert (finding.code, finding.severity) == ("producer-snapshot-damaged", Severity.ERROR), position
        assert "position" in finding.evidence


def test_a_leader_epoch_checkpoint() -> None:
    """Not found is what is said of leader epochs before the segment's, and where its first one began before it: no
    other part of the segment knows that."""
    segment = several_epochs()
    metadata = segment.metadata
    silent = 0
    for _, altered, findings in each_flip(segment, Part.LEADER_EPOCH):
        if findings:
            (finding,) = findings
            assert (finding.code, finding.severity) == ("leader-epoch-checkpoint-damaged", Severity.ERROR)
            continue
        silent += 1
        entries = read_leader_epoch_checkpoint(altered)
        own = entries[-len(metadata.segment_leader_epochs) :]
        assert [(one.epoch, max(one.start_offset, metadata.start_offset)) for one in own] == list(
            metadata.segment_leader_epochs
        )
        assert entries == sorted(entries)
    assert silent < 25

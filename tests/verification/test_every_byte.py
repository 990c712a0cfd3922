"""Every bit of every part of a captured segment, flipped by itself.

Level `full` finds all but what nothing that was copied with the segment can contradict:

- in the leader-epoch checkpoint, a digit of an epoch that ended before the segment, or of an offset before the segment
  at which an epoch began: the metadata says nothing of what was before;
- in a transaction index, the low bytes of a first offset that becomes lower than the segment's start: its transaction
  may have begun in a segment before.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.cluster import checked, exit_code, key_of
from tests.faults.segment_writer import WrittenSegment
from tests.shares import divided
from tieredctl.errors import ExitCode
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Part

FIRST_OFFSET_OF_ENTRY = range(10, 18)
FOUND_BY_HEADERS = (Part.LOG, Part.TIME_INDEX)
"""A log of two batches is read from end to end; of the smaller parts, only the indexes are."""


def each_flip(segment: WrittenSegment) -> Iterator[tuple[Part, int, int, bytes]]:
    """Part, byte and bit of each flip, and what the part then is."""
    for part, data in segment.parts.items():
        for position in divided(range(len(data))):
            for bit in range(8):
                altered = bytearray(data)
                altered[position] ^= 1 << bit
                yield part, position, bit, bytes(altered)


def test_full_gives_one_finding_on_the_part(small: WrittenSegment) -> None:
    silent = []

    for part, position, _, altered in each_flip(small):
        findings = checked(small, {part: altered}).findings
        if not findings:
            silent.append((part, position, altered))
            continue
        (finding,) = findings
        assert finding.evidence["segmentId"] == small.metadata.segment_id
        assert finding.evidence["key"] == key_of(small.metadata, part), (part, position, finding)
        assert exit_code(findings) is ExitCode.CORRUPTION

    assert len(silent) < 15
    for part, position, altered in silent:
        if part is Part.TRANSACTION_INDEX:
            assert position in FIRST_OFFSET_OF_ENTRY
            assert int.from_bytes(altered[10:18]) < small.metadata.start_offset
        else:
            assert part is Part.LEADER_EPOCH
            assert says_the_same_of(small, altered)


def test_headers_gives_the_same_for_the_log_and_its_indexes(small: WrittenSegment) -> None:
    for part, position, bit, altered in each_flip(small):
        if bit != position % 8:  # a bit of each byte
            continue
        findings = checked(small, {part: altered}, Level.HEADERS).findings
        expected = checked(small, {part: altered}).findings if part in FOUND_BY_HEADERS else ()
        assert findings == expected, (part, position)


def says_the_same_of(segment: WrittenSegment, checkpoint: bytes) -> bool:
    """Whether a checkpoint gives a segment of a single leader epoch that epoch, from its start or before."""
    ((epoch, _),) = segment.metadata.segment_leader_epochs
    last = read_leader_epoch_checkpoint(checkpoint)[-1]
    return last.epoch == epoch and last.start_offset <= segment.metadata.start_offset

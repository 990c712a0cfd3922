"""One altered bit anywhere in a log is found: exactly one finding, at the batch, with the offsets at risk."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import product

import pytest

from tests.faults.cluster import checked, exit_code
from tests.faults.segment_writer import SegmentWriter, WrittenBatch, WrittenSegment
from tests.faults.segments_made import indexed_by_batch
from tests.shares import divided
from tieredctl.errors import ExitCode
from tieredctl.formats.record_batches import BATCH_HEADER, HEADER_BYTES, Record, encode_batch
from tieredctl.model.findings import Finding, Severity
from tieredctl.ports.layout import Part

FIELDS = {field.name: struct.calcsize(">" + field.type.code) for field in BATCH_HEADER.fields}  # type: ignore[union-attr]


def bytes_of(field: str) -> range:
    """The bytes of a header's field, from the beginning of the batch."""
    start = sum(FIELDS[name] for name in list(FIELDS)[: list(FIELDS).index(field)])
    return range(start, start + FIELDS[field])


def some_batches(segment: WrittenSegment) -> list[WrittenBatch]:
    """The first two, one in the middle, the last two."""
    count = len(segment.batches)
    return [segment.batches[row] for row in sorted({0, min(1, count - 1), count // 2, max(count - 2, 0), count - 1})]


def flipped(data: bytes, position: int, bit: int) -> bytes:
    altered = bytearray(data)
    altered[position] ^= 1 << bit
    return bytes(altered)


def each_flip(segment: WrittenSegment, inside: range) -> Iterator[tuple[WrittenBatch, Finding]]:
    """The one finding for each bit of some bytes of some batches that was flipped."""
    log = segment.parts[Part.LOG]
    for batch, byte, bit in divided([*product(some_batches(segment), inside, range(8))]):
        report = checked(segment, {Part.LOG: flipped(log, batch.position + byte, bit)})
        (finding,) = report.findings
        yield batch, finding


def names_batch(finding: Finding, batch: WrittenBatch, segment: WrittenSegment) -> bool:
    """Whether the evidence says where the batch is and which offsets it held."""
    metadata, evidence = segment.metadata, finding.evidence
    return (
        evidence["segmentId"] == metadata.segment_id
        and evidence["part"] == "log"
        and str(evidence["key"]).endswith(".log")
        and evidence["position"] == batch.position
        and evidence["offsets"] == [batch.header.base_offset, batch.header.last_offset]
    )


@pytest.mark.usefixtures("pieces")
def test_a_base_offset_lies_outside_the_crc_and_is_found_by_its_neighbours(segment: WrittenSegment) -> None:
    for batch, finding in each_flip(segment, bytes_of("baseOffset")):
        assert finding.code in ("offsets-out-of-order", "records-outside-segment")
        assert finding.severity is Severity.CRITICAL
        assert names_batch(finding, batch, segment), (batch.position, finding)


@pytest.mark.parametrize("field", ["batchLength", "magic", "crc", "attributes", "lastOffsetDelta", "recordsCount"])
def test_any_other_field_but_the_epoch_makes_the_batch_corrupt(segment: WrittenSegment, field: str) -> None:
    for batch, finding in each_flip(segment, bytes_of(field)):
        assert (finding.code, finding.severity) == ("batch-corrupt", Severity.CRITICAL)
        assert names_batch(finding, batch, segment), (batch.position, finding)


def test_a_leader_epoch_lies_outside_the_crc_and_is_compared_with_the_metadata(segment: WrittenSegment) -> None:
    for batch, finding in each_flip(segment, bytes_of("partitionLeaderEpoch")):
        assert (finding.code, finding.severity) == ("epoch-mismatch", Severity.ERROR)
        assert exit_code([finding]) is ExitCode.CORRUPTION
        assert finding.evidence["position"] == batch.position
        assert finding.evidence["offsets"] == [batch.header.base_offset] * 2


def test_a_record_is_covered_by_the_crc(segment: WrittenSegment) -> None:
    shortest = min(batch.header.size for batch in some_batches(segment))
    bytes_in_records = range(HEADER_BYTES, shortest, max((shortest - HEADER_BYTES) // 10, 1))
    for batch, finding in each_flip(segment, bytes_in_records):
        assert (finding.code, finding.severity) == ("batch-corrupt", Severity.CRITICAL)
        assert names_batch(finding, batch, segment)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 60, 2**31 - 1, 1 << 27])
def test_an_impossible_length(segment: WrittenSegment, length: int) -> None:
    for batch in some_batches(segment):
        log = bytearray(segment.parts[Part.LOG])
        struct.pack_into(">i", log, batch.position + 8, length)
        (finding,) = checked(segment, {Part.LOG: bytes(log)}).findings
        assert finding.code == "batch-corrupt"
        assert names_batch(finding, batch, segment), (batch.position, finding)


def test_a_batch_that_was_overwritten(segment: WrittenSegment) -> None:
    for batch in some_batches(segment):
        for filling in (b"\0", b"\xff", b"\2", b"\0\0\0\2"):
            log = bytearray(segment.parts[Part.LOG])
            log[batch.position : batch.end] = (filling * batch.header.size)[: batch.header.size]
            (finding,) = checked(segment, {Part.LOG: bytes(log)}).findings
            assert finding.code == "batch-corrupt"
            assert names_batch(finding, batch, segment), (batch.position, filling, finding)


def test_damage_over_several_batches_is_one_finding(segment: WrittenSegment) -> None:
    first, last = segment.batches[0], segment.batches[len(segment.batches) // 2]
    log = bytearray(segment.parts[Part.LOG])
    log[: last.end] = random.Random(1).randbytes(last.end)
    (finding,) = checked(segment, {Part.LOG: bytes(log)}).findings
    assert finding.code == "batch-corrupt"
    assert finding.evidence["position"] == 0
    assert finding.evidence["offsets"] == [first.header.base_offset, last.header.last_offset]


def test_two_damaged_batches_with_a_sound_one_between_are_two_findings(long_segment: WrittenSegment) -> None:
    log = bytearray(long_segment.parts[Part.LOG])
    hit = [long_segment.batches[1], long_segment.batches[3]]
    for batch in hit:
        log[batch.position + HEADER_BYTES] ^= 1
    findings = checked(long_segment, {Part.LOG: bytes(log)}).findings
    assert [finding.evidence["position"] for finding in findings] == [batch.position for batch in hit]


def test_everything_sound_is_still_counted(segment: WrittenSegment) -> None:
    batch = segment.batches[len(segment.batches) // 2]
    report = checked(segment, {Part.LOG: flipped(segment.parts[Part.LOG], batch.position + 30, 0)})
    assert report.batches == len(segment.batches) - 1
    assert report.records == segment.records - batch.header.records_count


def test_many_damaged_batches_are_summed_up(segment: WrittenSegment) -> None:
    log = bytearray(segment.parts[Part.LOG])
    for batch in segment.batches[::2]:
        log[batch.position + 30] ^= 1
    findings = checked(segment, {Part.LOG: bytes(log)}).findings
    assert {finding.code for finding in findings} == {"batch-corrupt"}
    assert len(findings) == min(20, len(segment.batches[::2]))
    assert findings[-1].evidence["offsets"][1] == segment.batches[::2][-1].header.last_offset  # type: ignore[index]


def test_the_log_of_another_segment(segment: WrittenSegment) -> None:
    other = indexed_by_batch(start_offset=90_000)
    findings = checked(segment, {Part.LOG: other.parts[Part.LOG]}).findings
    assert {"size-mismatch", "records-outside-segment"} & {finding.code for finding in findings}
    assert exit_code(findings) is ExitCode.CORRUPTION
    assert len(findings) < 30


def test_records_that_hold_batches_are_not_taken_for_batches() -> None:
    inner = SegmentWriter(5_000_000_000).data(3, 100)
    writer = SegmentWriter(0)
    writer.append(writer.data())
    writer.append(encode_batch([Record(writer.next_offset, writer.timestamp, None, inner)], partition_leader_epoch=0))
    writer.next_offset += 1
    writer.append(writer.data())
    made = writer.close()
    log = bytearray(made.parts[Part.LOG])
    log[made.batches[1].position + 11] ^= 4
    (finding,) = checked(made, {Part.LOG: bytes(log)}).findings
    assert names_batch(finding, made.batches[1], made)

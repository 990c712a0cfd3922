"""Parts of segments that real brokers copied, altered, cut, emptied, longer or gone: the one finding, and no other
among all segments around."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.faults.cluster import Cluster
from tests.faults.expectations import DAMAGE, only_finding, part_finding
from tests.faults.segment_writer import WrittenSegment
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Part

PROMISED = (Part.LOG, Part.OFFSET_INDEX, Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH)
DEEP = (Level.HEADERS, Level.FULL)
FIRST, LAST = 0, -1
IN_A_BATCH = {
    "length, negative": 8,
    "length, a little off": 11,
    "magic": 16,
    "crc": 19,
    "attributes": 22,
    "last offset delta": 26,
    "maximal timestamp": 42,
    "records count": 60,
    "records": 64,
}
each_row = pytest.mark.parametrize("row", [FIRST, LAST], ids=["first batch", "last batch"])


def altered(segment: WrittenSegment, part: Part, position: int, mask: int = 0xFF) -> bytes:
    data = bytearray(segment.parts[part])
    data[position] ^= mask
    return bytes(data)


def judge(
    cluster: Cluster,
    segment: WrittenSegment,
    part: Part,
    data: bytes | None,
    code: str = "",
    levels: Sequence[Level] = (Level.FULL,),
    **evidence: object,
) -> None:
    """Asserts the one finding of a cluster in which a part has other bytes, or is gone: the part's own code, unless
    another is given, with this evidence."""
    metadata = segment.metadata
    damaged = cluster.without_part(metadata, part) if data is None else cluster.with_part(metadata, part, data)
    for level in levels:
        found = part_finding(damaged, code or DAMAGE[part], metadata, part, level=level)
        assert {name: found.get(name) for name in evidence} == evidence, (part, level, found)


@each_row
def test_a_byte_of_a_batch(two_partitions: Cluster, real_segment: WrittenSegment, row: int) -> None:
    """Of a base offset that is far away, the batches that follow say that this one is out of order."""
    batch, codes = real_segment.batches[row], dict.fromkeys(IN_A_BATCH.values(), "batch-corrupt")
    far = "offsets-out-of-order" if row == FIRST else "records-outside-segment"
    first, last = batch.header.base_offset, batch.header.last_offset

    for byte, code in {**codes, 3: far, 15: "epoch-mismatch"}.items():
        data = altered(real_segment, Part.LOG, batch.position + byte, 0x20)
        offsets = [first, first if code == "epoch-mismatch" else last]
        judge(two_partitions, real_segment, Part.LOG, data, code, position=batch.position, offsets=offsets)


def test_a_base_offset_that_goes_back(two_partitions: Cluster, large: WrittenSegment) -> None:
    batch = large.batches[9]
    data = altered(large, Part.LOG, batch.position + 7, 0x08)
    offsets = [batch.header.base_offset, batch.header.last_offset]

    judge(two_partitions, large, Part.LOG, data, "offsets-out-of-order", position=batch.position, offsets=offsets)


def test_a_byte_of_an_index(two_partitions: Cluster, small: WrittenSegment, large: WrittenSegment) -> None:
    """Of the offset and the position, far and near; of a timestamp, and its offset; of each field of a transaction."""
    faults = [(large, Part.OFFSET_INDEX, 8 * 5 + byte, 0x01, 8 * 5) for byte in (0, 3, 4, 7)]
    for segment in (small, large):
        last = len(segment.parts[Part.TIME_INDEX]) - 12
        faults += [(segment, Part.TIME_INDEX, last + byte, 0x01, last) for byte in (0, 7, 8)]
    faults += [(small, Part.TRANSACTION_INDEX, byte, 0xFF, 0) for byte in (1, 9, 10, 25, 33)]

    for segment, part, byte, mask, position in faults:
        judge(two_partitions, segment, part, altered(segment, part, byte, mask), position=position)


def test_a_byte_of_a_small_part(two_partitions: Cluster, small: WrittenSegment) -> None:
    """Of a producer snapshot, its version, CRC, count, producer, transaction, and end; of a checkpoint, its version,
    count, an epoch, the end of its last line, and one that makes it no text."""
    for byte in (1, 4, 9, 10, 40, -1):
        position = 0 if byte == 1 else 2
        judge(
            *(two_partitions, small, Part.PRODUCER_SNAPSHOT),
            altered(small, Part.PRODUCER_SNAPSHOT, byte),
            position=position,
        )
    for byte, mask in ((0, 0x01), (2, 0x01), (5, 0xFF), (-5, 0x01), (-1, 0x2A)):
        judge(two_partitions, small, Part.LEADER_EPOCH, altered(small, Part.LEADER_EPOCH, byte, mask))


def test_a_record_of_every_segment(cluster: Cluster) -> None:
    damaged, segments = cluster, cluster.finished()
    for metadata in segments:
        data = bytearray(cluster.data(metadata, Part.LOG))
        data[-1] ^= 0x10
        damaged = damaged.with_part(metadata, Part.LOG, bytes(data))

    findings = damaged.findings()

    assert {finding.code for finding in findings} == {"batch-corrupt"}
    assert [finding.evidence["segmentId"] for finding in findings] == [metadata.segment_id for metadata in segments]


def test_a_promised_part_is_missing(two_partitions: Cluster, real_segment: WrittenSegment) -> None:
    whole = [real_segment.metadata.start_offset, real_segment.metadata.end_offset]
    for part in PROMISED:
        offsets = whole if part is Part.LOG else None
        judge(two_partitions, real_segment, part, None, "object-missing", list(Level), offsets=offsets)


def test_a_transaction_index_is_missing_where_the_log_aborts_transactions(
    two_partitions: Cluster, small: WrittenSegment
) -> None:
    part, code, metadata = Part.TRANSACTION_INDEX, "transaction-index-missing", small.metadata
    whole = [metadata.start_offset, metadata.end_offset]

    judge(two_partitions, small, part, None, code, offsets=whole, markerPosition=small.batches[-1].position)
    judge(two_partitions, small, part, b"", code, DEEP, position=0)


def test_a_whole_segment_is_missing(two_partitions: Cluster, real_segment: WrittenSegment) -> None:
    damaged = two_partitions
    for part in real_segment.parts:
        damaged = damaged.without_part(real_segment.metadata, part)

    findings = damaged.findings()

    assert {finding.code for finding in findings} == {"object-missing"}
    assert sorted(str(finding.evidence["part"]) for finding in findings) == sorted(PROMISED)


def test_a_log_is_cut(two_partitions: Cluster, real_segment: WrittenSegment) -> None:
    """Empty, in its last batch, between batches, or in one: a byte of it, no whole header, or only its header."""
    log, last, metadata = real_segment.parts[Part.LOG], real_segment.batches[-1].header, real_segment.metadata
    cuts = {len(log) - 1: [last.base_offset, last.last_offset], 0: [metadata.start_offset, metadata.end_offset]}
    for batch in (real_segment.batches[1], real_segment.batches[-1]):
        for inside in (0, 1, 12, 61):
            cuts[batch.position + inside] = [batch.header.base_offset, metadata.end_offset]

    for size, offsets in cuts.items():
        judge(
            *(two_partitions, real_segment, Part.LOG, log[:size], "size-mismatch", DEEP),
            position=size,
            offsets=offsets,
        )
    for size in (0, len(log) - 1):
        judge(two_partitions, real_segment, Part.LOG, log[:size], "size-mismatch", [Level.LISTING], position=size)


def test_an_index_is_cut(two_partitions: Cluster, small: WrittenSegment, large: WrittenSegment) -> None:
    """In an entry, or before one. A broker that restarts begins to count the interval again, and leaves an offset index
    that lacks one; but then a leader epoch begins there."""
    cuts = [(small, Part.TRANSACTION_INDEX, 34, size) for size in (1, 17, 33)]
    cuts += [(large, Part.OFFSET_INDEX, 8, kept * 8) for kept in (0, 1, 8, 14, 15)]
    for part, width in ((Part.OFFSET_INDEX, 8), (Part.TIME_INDEX, 12)):
        cuts += [(large, part, width, len(large.parts[part]) - lost) for lost in (1, width - 1, width + 1)]
    for segment in (small, large):
        cuts += [(segment, Part.TIME_INDEX, 12, size) for size in (0, len(segment.parts[Part.TIME_INDEX]) - 12)]

    for segment, part, width, size in cuts:
        data = segment.parts[part][:size]
        judge(two_partitions, segment, part, data, levels=DEEP, position=size // width * width)


def test_a_small_part_is_cut(two_partitions: Cluster, small: WrittenSegment, large: WrittenSegment) -> None:
    """Headers finds those that are empty."""
    for size in (0, 5, 9, 10, 11, 56, 100, -1):
        judge(two_partitions, small, Part.PRODUCER_SNAPSHOT, small.parts[Part.PRODUCER_SNAPSHOT][:size])
    for segment in (small, large):
        for size in range(len(segment.parts[Part.LEADER_EPOCH])):
            judge(two_partitions, segment, Part.LEADER_EPOCH, segment.parts[Part.LEADER_EPOCH][:size])
        for part in (Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH):
            judge(two_partitions, segment, part, b"", levels=[Level.HEADERS])


def test_a_part_has_more_after_its_end(two_partitions: Cluster, small: WrittenSegment, large: WrittenSegment) -> None:
    """A byte, zeros, ones, or itself once more."""
    for segment in (small, large):
        log = segment.parts[Part.LOG]
        for more in (b"\0", bytes(4_096), b"\1" * 408, log):
            judge(
                *(two_partitions, segment, Part.LOG, log + more, "size-mismatch", list(Level)),
                position=len(log),
                offsets=None,
            )
    for part in DAMAGE.keys() - {Part.LOG}:
        segment = small if part is Part.TRANSACTION_INDEX else large
        data = segment.parts[part]
        for more in (b"\0", bytes(408), b"\1" * 408, data):
            judge(two_partitions, segment, part, data + more)


def test_a_part_of_another_segment(two_partitions: Cluster, small: WrittenSegment) -> None:
    others = [one for one in two_partitions.finished() if one.topic_id_partition == small.metadata.topic_id_partition]
    other = next(one for one in others if one.start_offset > small.metadata.end_offset)
    damaged = two_partitions.with_part(small.metadata, Part.TIME_INDEX, two_partitions.data(other, Part.TIME_INDEX))

    assert only_finding(damaged, "index-damaged")["segmentId"] == small.metadata.segment_id

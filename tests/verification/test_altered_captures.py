"""One altered byte in what a real broker copied: its finding, and no other among all segments around it."""

from __future__ import annotations

import pytest

from tests.faults.cluster import Cluster
from tests.faults.expectations import part_finding
from tests.faults.segment_writer import WrittenSegment
from tieredctl.errors import ExitCode
from tieredctl.ports.layout import Part

FIRST, LAST = 0, -1


def altered(cluster: Cluster, segment: WrittenSegment, part: Part, position: int, mask: int = 0xFF) -> Cluster:
    data = bytearray(segment.parts[part])
    data[position] ^= mask
    return cluster.with_part(segment.metadata, part, bytes(data))


@pytest.mark.parametrize("row", [FIRST, LAST], ids=["first batch", "last batch"])
@pytest.mark.parametrize(
    ("byte", "code"),
    [
        pytest.param(8, "batch-corrupt", id="length, negative"),
        pytest.param(11, "batch-corrupt", id="length, a little off"),
        pytest.param(16, "batch-corrupt", id="magic"),
        pytest.param(19, "batch-corrupt", id="crc"),
        pytest.param(22, "batch-corrupt", id="attributes"),
        pytest.param(26, "batch-corrupt", id="last offset delta"),
        pytest.param(42, "batch-corrupt", id="maximal timestamp"),
        pytest.param(60, "batch-corrupt", id="records count"),
        pytest.param(64, "batch-corrupt", id="records"),
    ],
)
def test_a_batch(two_partitions: Cluster, real_segment: WrittenSegment, row: int, byte: int, code: str) -> None:
    batch = real_segment.batches[row]
    damaged = altered(two_partitions, real_segment, Part.LOG, batch.position + byte, 0x20)

    evidence = part_finding(damaged, code, real_segment.metadata, Part.LOG)

    assert evidence["position"] == batch.position
    assert evidence["offsets"] == [batch.header.base_offset, batch.header.last_offset]


@pytest.mark.parametrize("row", [FIRST, LAST], ids=["first batch", "last batch"])
def test_a_leader_epoch_of_a_batch(two_partitions: Cluster, real_segment: WrittenSegment, row: int) -> None:
    batch = real_segment.batches[row]
    damaged = altered(two_partitions, real_segment, Part.LOG, batch.position + 15, 0x20)

    evidence = part_finding(damaged, "epoch-mismatch", real_segment.metadata, Part.LOG)

    assert evidence["position"] == batch.position
    assert evidence["offsets"] == [batch.header.base_offset] * 2


@pytest.mark.parametrize("row", [FIRST, LAST], ids=["first batch", "last batch"])
def test_a_base_offset_far_away(two_partitions: Cluster, real_segment: WrittenSegment, row: int) -> None:
    """Where batches follow, they say that this one is out of order."""
    batch, follows = real_segment.batches[row], row == FIRST
    damaged = altered(two_partitions, real_segment, Part.LOG, batch.position + 3, 0x20)
    code = "offsets-out-of-order" if follows else "records-outside-segment"

    evidence = part_finding(damaged, code, real_segment.metadata, Part.LOG)

    assert evidence["position"] == batch.position
    assert evidence["offsets"] == [batch.header.base_offset, batch.header.last_offset]


def test_a_base_offset_that_goes_back(two_partitions: Cluster, large: WrittenSegment) -> None:
    batch = large.batches[9]
    damaged = altered(two_partitions, large, Part.LOG, batch.position + 7, 0x08)

    evidence = part_finding(damaged, "offsets-out-of-order", large.metadata, Part.LOG)

    assert evidence["position"] == batch.position
    assert evidence["offsets"] == [batch.header.base_offset, batch.header.last_offset]


@pytest.mark.parametrize("byte", [0, 3, 4, 7], ids=["offset, far", "offset, near", "position, far", "position, near"])
def test_an_offset_index_entry(two_partitions: Cluster, large: WrittenSegment, byte: int) -> None:
    damaged = altered(two_partitions, large, Part.OFFSET_INDEX, 8 * 5 + byte, 0x01)

    evidence = part_finding(damaged, "index-damaged", large.metadata, Part.OFFSET_INDEX)

    assert evidence["position"] == 8 * 5


@pytest.mark.parametrize("byte", [0, 7, 8], ids=["timestamp, far", "timestamp, near", "offset"])
def test_a_time_index_entry(two_partitions: Cluster, real_segment: WrittenSegment, byte: int) -> None:
    last = len(real_segment.parts[Part.TIME_INDEX]) - 12
    damaged = altered(two_partitions, real_segment, Part.TIME_INDEX, last + byte, 0x01)

    evidence = part_finding(damaged, "index-damaged", real_segment.metadata, Part.TIME_INDEX)

    assert evidence["position"] == last


@pytest.mark.parametrize("byte", [1, 9, 10, 25, 33], ids=["version", "producer", "first", "last", "stable"])
def test_a_transaction_index_entry(two_partitions: Cluster, small: WrittenSegment, byte: int) -> None:
    damaged = altered(two_partitions, small, Part.TRANSACTION_INDEX, byte)

    evidence = part_finding(damaged, "index-damaged", small.metadata, Part.TRANSACTION_INDEX)

    assert evidence["position"] == 0


@pytest.mark.parametrize(
    ("byte", "position"),
    [
        pytest.param(1, 0, id="version"),
        pytest.param(4, 2, id="crc"),
        pytest.param(9, 2, id="count"),
        pytest.param(10, 2, id="producer"),
        pytest.param(40, 2, id="transaction"),
        pytest.param(-1, 2, id="last byte"),
    ],
)
def test_a_producer_snapshot(two_partitions: Cluster, small: WrittenSegment, byte: int, position: int) -> None:
    damaged = altered(two_partitions, small, Part.PRODUCER_SNAPSHOT, byte)

    evidence = part_finding(damaged, "producer-snapshot-damaged", small.metadata, Part.PRODUCER_SNAPSHOT)

    assert evidence["position"] == position


@pytest.mark.parametrize(
    ("byte", "mask"),
    [
        pytest.param(0, 0x01, id="version"),
        pytest.param(2, 0x01, id="count"),
        pytest.param(5, 0xFF, id="no text"),
        pytest.param(-5, 0x01, id="epoch"),
        pytest.param(-1, 0x2A, id="end of the last line"),
    ],
)
def test_a_leader_epoch_checkpoint(two_partitions: Cluster, small: WrittenSegment, byte: int, mask: int) -> None:
    damaged = altered(two_partitions, small, Part.LEADER_EPOCH, byte, mask)

    part_finding(damaged, "leader-epoch-checkpoint-damaged", small.metadata, Part.LEADER_EPOCH, ExitCode.CORRUPTION)


def test_a_record_of_every_segment(cluster: Cluster) -> None:
    damaged, segments = cluster, cluster.finished()
    for metadata in segments:
        data = bytearray(cluster.data(metadata, Part.LOG))
        data[-1] ^= 0x10
        damaged = damaged.with_part(metadata, Part.LOG, bytes(data))

    findings = damaged.findings()

    assert {finding.code for finding in findings} == {"batch-corrupt"}
    assert [finding.evidence["segmentId"] for finding in findings] == [metadata.segment_id for metadata in segments]

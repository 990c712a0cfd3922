"""Parts of segments that real brokers copied which are gone, cut, emptied, or longer than they were."""

from __future__ import annotations

import pytest

from tests.faults.cluster import Cluster
from tests.faults.expectations import only_finding, part_finding
from tests.faults.segment_writer import WrittenSegment
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Part

PROMISED = (Part.LOG, Part.OFFSET_INDEX, Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH)
BESIDE_A_LOG = {
    Part.OFFSET_INDEX: "index-damaged",
    Part.TIME_INDEX: "index-damaged",
    Part.PRODUCER_SNAPSHOT: "producer-snapshot-damaged",
    Part.LEADER_EPOCH: "leader-epoch-checkpoint-damaged",
    Part.TRANSACTION_INDEX: "index-damaged",
}


def cut(cluster: Cluster, segment: WrittenSegment, part: Part, size: int) -> Cluster:
    """With the first `size` bytes of a part, or without its last ones where that is negative."""
    return cluster.with_part(segment.metadata, part, segment.parts[part][:size])


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("part", PROMISED)
def test_a_promised_part_is_missing(
    two_partitions: Cluster, real_segment: WrittenSegment, part: Part, level: Level
) -> None:
    metadata = real_segment.metadata
    damaged = two_partitions.without_part(metadata, part)

    evidence = part_finding(damaged, "object-missing", metadata, part, level=level)

    offsets = [metadata.start_offset, metadata.end_offset]
    assert evidence.get("offsets") == (offsets if part is Part.LOG else None)


def test_a_transaction_index_is_missing_where_the_log_aborts_transactions(
    two_partitions: Cluster, small: WrittenSegment
) -> None:
    damaged = two_partitions.without_part(small.metadata, Part.TRANSACTION_INDEX)

    evidence = part_finding(damaged, "transaction-index-missing", small.metadata, Part.TRANSACTION_INDEX)

    assert evidence["offsets"] == [small.metadata.start_offset, small.metadata.end_offset]
    assert evidence["markerPosition"] == small.batches[-1].position


def test_a_whole_segment_is_missing(two_partitions: Cluster, real_segment: WrittenSegment) -> None:
    damaged = two_partitions
    for part in real_segment.parts:
        damaged = damaged.without_part(real_segment.metadata, part)

    findings = damaged.findings()

    assert {finding.code for finding in findings} == {"object-missing"}
    assert sorted(str(finding.evidence["part"]) for finding in findings) == sorted(PROMISED)


@pytest.mark.parametrize("level", list(Level))
def test_a_log_is_cut_in_its_last_batch(two_partitions: Cluster, real_segment: WrittenSegment, level: Level) -> None:
    damaged = cut(two_partitions, real_segment, Part.LOG, -1)

    evidence = part_finding(damaged, "size-mismatch", real_segment.metadata, Part.LOG, level=level)

    assert evidence["position"] == len(real_segment.parts[Part.LOG]) - 1
    if level is not Level.LISTING:
        header = real_segment.batches[-1].header
        assert evidence["offsets"] == [header.base_offset, header.last_offset]


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
@pytest.mark.parametrize("row", [1, -1])
@pytest.mark.parametrize("inside", [0, 1, 12, 61], ids=["between batches", "one byte", "no header", "only a header"])
def test_a_log_is_cut_before_or_in_a_batch(
    two_partitions: Cluster, real_segment: WrittenSegment, row: int, inside: int, level: Level
) -> None:
    batch = real_segment.batches[row]
    damaged = cut(two_partitions, real_segment, Part.LOG, batch.position + inside)

    evidence = part_finding(damaged, "size-mismatch", real_segment.metadata, Part.LOG, level=level)

    assert evidence["position"] == batch.position + inside
    assert evidence["offsets"] == [batch.header.base_offset, real_segment.metadata.end_offset]


@pytest.mark.parametrize("level", list(Level))
def test_a_log_is_empty(two_partitions: Cluster, real_segment: WrittenSegment, level: Level) -> None:
    damaged = cut(two_partitions, real_segment, Part.LOG, 0)

    evidence = part_finding(damaged, "size-mismatch", real_segment.metadata, Part.LOG, level=level)

    assert evidence["position"] == 0
    assert evidence["offsets"] == [real_segment.metadata.start_offset, real_segment.metadata.end_offset]


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
@pytest.mark.parametrize(("part", "width"), [(Part.OFFSET_INDEX, 8), (Part.TIME_INDEX, 12)])
def test_an_index_is_cut_in_an_entry(
    two_partitions: Cluster, large: WrittenSegment, part: Part, width: int, level: Level
) -> None:
    for lost in (1, width - 1, width + 1):
        damaged = cut(two_partitions, large, part, -lost)

        evidence = part_finding(damaged, "index-damaged", large.metadata, part, level=level)

        assert evidence["position"] == (len(large.parts[part]) - lost) // width * width


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_an_offset_index_lacks_entries_at_its_end(two_partitions: Cluster, large: WrittenSegment, level: Level) -> None:
    for kept in (0, 1, 8, 14):
        damaged = cut(two_partitions, large, Part.OFFSET_INDEX, kept * 8)

        evidence = part_finding(damaged, "index-damaged", large.metadata, Part.OFFSET_INDEX, level=level)

        assert evidence["position"] == kept * 8


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_an_offset_index_lacks_one_entry(two_partitions: Cluster, large: WrittenSegment, level: Level) -> None:
    """A broker that restarts begins to count the interval again, and leaves the same index; but then a leader epoch
    begins there."""
    damaged = cut(two_partitions, large, Part.OFFSET_INDEX, -8)

    evidence = part_finding(damaged, "index-damaged", large.metadata, Part.OFFSET_INDEX, level=level)

    assert evidence["position"] == 15 * 8


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_a_time_index_lacks_its_last_entry_or_all(
    two_partitions: Cluster, real_segment: WrittenSegment, level: Level
) -> None:
    for size in {0, len(real_segment.parts[Part.TIME_INDEX]) - 12}:
        damaged = cut(two_partitions, real_segment, Part.TIME_INDEX, size)

        evidence = part_finding(damaged, "index-damaged", real_segment.metadata, Part.TIME_INDEX, level=level)

        assert evidence["position"] == size


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_a_transaction_index_is_cut_in_its_entry(two_partitions: Cluster, small: WrittenSegment, level: Level) -> None:
    for size in (1, 17, 33):
        damaged = cut(two_partitions, small, Part.TRANSACTION_INDEX, size)

        evidence = part_finding(damaged, "index-damaged", small.metadata, Part.TRANSACTION_INDEX, level=level)

        assert evidence["position"] == 0


@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_a_transaction_index_is_empty(two_partitions: Cluster, small: WrittenSegment, level: Level) -> None:
    damaged = cut(two_partitions, small, Part.TRANSACTION_INDEX, 0)

    evidence = part_finding(damaged, "transaction-index-missing", small.metadata, Part.TRANSACTION_INDEX, level=level)

    assert evidence["position"] == 0


@pytest.mark.parametrize("size", [0, 5, 9, 10, 11, 56, 100, -1])
def test_a_producer_snapshot_is_cut(two_partitions: Cluster, small: WrittenSegment, size: int) -> None:
    damaged = cut(two_partitions, small, Part.PRODUCER_SNAPSHOT, size)

    part_finding(damaged, "producer-snapshot-damaged", small.metadata, Part.PRODUCER_SNAPSHOT)


def test_a_leader_epoch_checkpoint_is_cut_anywhere(two_partitions: Cluster, real_segment: WrittenSegment) -> None:
    for size in range(len(real_segment.parts[Part.LEADER_EPOCH])):
        damaged = cut(two_partitions, real_segment, Part.LEADER_EPOCH, size)

        part_finding(damaged, "leader-epoch-checkpoint-damaged", real_segment.metadata, Part.LEADER_EPOCH)


@pytest.mark.parametrize("part", [Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH])
def test_headers_finds_small_parts_that_are_empty(
    two_partitions: Cluster, real_segment: WrittenSegment, part: Part
) -> None:
    damaged = cut(two_partitions, real_segment, part, 0)

    part_finding(damaged, BESIDE_A_LOG[part], real_segment.metadata, part, level=Level.HEADERS)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("more", [b"\0", b"\0" * 4_096, b"\1" * 408, None], ids=["a byte", "zeros", "ones", "itself"])
def test_a_log_has_more_after_its_end(
    two_partitions: Cluster, real_segment: WrittenSegment, more: bytes | None, level: Level
) -> None:
    log = real_segment.parts[Part.LOG]
    damaged = two_partitions.with_part(real_segment.metadata, Part.LOG, log + (log if more is None else more))

    evidence = part_finding(damaged, "size-mismatch", real_segment.metadata, Part.LOG, level=level)

    assert evidence["position"] == len(log)
    assert "offsets" not in evidence


@pytest.mark.parametrize("part", list(BESIDE_A_LOG))
@pytest.mark.parametrize("more", [b"\0", b"\0" * 408, b"\1" * 408, None], ids=["a byte", "zeros", "ones", "itself"])
def test_what_lies_next_to_a_log_has_more_after_its_end(
    two_partitions: Cluster, small: WrittenSegment, large: WrittenSegment, part: Part, more: bytes | None
) -> None:
    segment = small if part is Part.TRANSACTION_INDEX else large
    data = segment.parts[part]
    damaged = two_partitions.with_part(segment.metadata, part, data + (data if more is None else more))

    part_finding(damaged, BESIDE_A_LOG[part], segment.metadata, part)


def test_a_part_of_another_segment(two_partitions: Cluster, small: WrittenSegment) -> None:
    others = [one for one in two_partitions.finished() if one.topic_id_partition == small.metadata.topic_id_partition]
    other = next(one for one in others if one.start_offset > small.metadata.end_offset)
    damaged = two_partitions.with_part(small.metadata, Part.TIME_INDEX, two_partitions.data(other, Part.TIME_INDEX))

    evidence = only_finding(damaged, "index-damaged")

    assert evidence["segmentId"] == small.metadata.segment_id

"""A producer snapshot that is sound in itself, and is not the one that the broker took behind this segment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from tests.faults.captured_segments import captured_segment
from tests.faults.cluster import Cluster, checked
from tests.faults.expectations import part_finding
from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tests.faults.segments_made import transactions
from tieredctl.errors import ExitCode
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot, read_producer_snapshot
from tieredctl.formats.record_batches import ControlType
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding, Severity
from tieredctl.ports.layout import Part

SNAPSHOT = Part.PRODUCER_SNAPSHOT
HOUR_MS = 3_600_000


def partitions(cluster: Cluster) -> Iterator[list[RemoteLogSegmentMetadata]]:
    """The segments of each partition by offset."""
    for _, segments in groupby(cluster.finished(), lambda metadata: metadata.topic_id_partition):
        yield list(segments)


def producers_of(segment: WrittenSegment) -> set[int]:
    """The producers that wrote in a segment."""
    return {batch.header.producer_id for batch in segment.batches} - {-1}


def test_the_oldest_over_any_later_one_of_the_partition(cluster: Cluster) -> None:
    """Each segment in which a producer wrote, so that the two must differ."""
    replaced = 0
    for oldest, *later in partitions(cluster):
        stale = cluster.data(oldest, SNAPSHOT)
        for metadata in later:
            segment = captured_segment(cluster, metadata)
            if not producers_of(segment):
                continue
            replaced += 1
            findings = checked(segment, {SNAPSHOT: stale}).findings
            assert [finding.code for finding in findings] == ["producer-snapshot-damaged"], metadata
    assert replaced > 40


def test_the_newest_over_the_oldest(cluster: Cluster) -> None:
    for segments in partitions(cluster):
        oldest, newest = segments[0], segments[-1]
        later = cluster.data(newest, SNAPSHOT)
        if len(segments) > 1 and producers_of(captured_segment(cluster, newest)):
            findings = checked(captured_segment(cluster, oldest), {SNAPSHOT: later}).findings
            assert [finding.code for finding in findings] == ["producer-snapshot-damaged"], oldest


def test_it_is_the_only_finding_of_a_cluster(two_partitions: Cluster, small: WrittenSegment) -> None:
    oldest = next(
        one for one in two_partitions.finished() if one.topic_id_partition == small.metadata.topic_id_partition
    )
    stale = two_partitions.data(oldest, SNAPSHOT)
    damaged = two_partitions.with_part(small.metadata, SNAPSHOT, stale)

    part_finding(damaged, "producer-snapshot-damaged", small.metadata, SNAPSHOT, ExitCode.CORRUPTION)


def entries_of(segment: WrittenSegment) -> list[ProducerEntry]:
    return read_producer_snapshot(segment.parts[SNAPSHOT])


def found(segment: WrittenSegment, entries: list[ProducerEntry]) -> tuple[Finding, ...]:
    return checked(segment, {SNAPSHOT: encode_producer_snapshot(entries)}).findings


@pytest.mark.parametrize(
    "field",
    [
        "epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "timestamp",
        "coordinator_epoch",
        "current_txn_first_offset",
    ],
)
@pytest.mark.parametrize("producer", [71, 72], ids=["ended its transaction", "has one open"])
def test_any_field_that_the_log_tells(producer: int, field: str) -> None:
    segment = transactions()
    entries = [
        entry._replace(**{field: getattr(entry, field) - 1}) if entry.producer_id == producer else entry
        for entry in entries_of(segment)
    ]

    (finding,) = found(segment, entries)

    assert (finding.code, finding.severity) == ("producer-snapshot-damaged", Severity.ERROR)
    assert str(producer) in finding.message


def earlier(**changes: Any) -> ProducerEntry:
    """A producer that wrote before the segment, and was last heard of as it began."""
    entry = ProducerEntry(7, 3, 40, 999, 2, transactions().batches[0].header.base_timestamp - 1, 5, -1)
    return entry._replace(**changes)


class TestNoFault:
    @pytest.mark.parametrize("entry", [earlier(), earlier(current_txn_first_offset=950), earlier(last_offset=-1)])
    def test_producers_of_earlier_segments_may_be_there(self, entry: ProducerEntry) -> None:
        segment = transactions()

        assert found(segment, [*entries_of(segment), entry]) == ()

    def test_a_transaction_may_have_begun_before_the_segment(self) -> None:
        writer = SegmentWriter(1_000)
        writer.append(writer.data(2, producer=71))
        segment = writer.close()
        (entry,) = entries_of(segment)

        assert found(segment, [entry._replace(current_txn_first_offset=970, coordinator_epoch=4)]) == ()

    def test_whoever_was_silent_for_long_may_have_expired(self) -> None:
        writer = SegmentWriter(1_000)
        writer.append(writer.data(2, producer=71))
        writer.append(writer.marker(71, ControlType.COMMIT))
        writer.timestamp += 2 * HOUR_MS
        writer.append(writer.data(2, producer=72))
        segment = writer.close()

        assert found(segment, [entry for entry in entries_of(segment) if entry.producer_id != 71]) == ()

    def test_a_marker_without_a_transaction_leaves_the_last_batch_where_it_was(self) -> None:
        writer = SegmentWriter(1_000)
        writer.append(writer.data(2, producer=71))
        writer.append(writer.marker(71, ControlType.COMMIT))
        whole = writer.close()
        behind = SegmentWriter(2_000)
        behind.append(behind.data(2))
        behind.know_producers_of(writer)
        behind.append(behind.marker(71, ControlType.ABORT))
        segment = behind.close()

        assert entries_of(segment)[0].last_offset < whole.metadata.end_offset
        assert checked(segment).findings == ()


class TestMissing:
    def ended(self) -> WrittenSegment:
        """A producer whose transaction ended, then a producer of no name."""
        writer = SegmentWriter(1_000)
        writer.append(writer.data(2, producer=71))
        writer.append(writer.marker(71, ControlType.COMMIT))
        writer.append(writer.data(2))
        return writer.close()

    def test_whoever_has_a_transaction_open_never_expires(self) -> None:
        segment = transactions()

        (finding,) = found(segment, [entry for entry in entries_of(segment) if entry.producer_id != 72])

        assert (finding.code, finding.severity) == ("producer-snapshot-damaged", Severity.ERROR)

    def test_nobody_expires_before_one_who_was_silent_for_longer(self) -> None:
        (finding,) = found(self.ended(), [earlier()])

        assert (finding.code, finding.severity) == ("producer-snapshot-damaged", Severity.ERROR)

    def test_nobody_is_taken_to_expire_within_an_hour_but_it_could_be(self) -> None:
        (finding,) = found(self.ended(), [])

        assert (finding.code, finding.severity) == ("producer-snapshot-damaged", Severity.WARNING)


class TestADamagedLog:
    @pytest.mark.parametrize("row", [0, 5, -1])
    def test_no_snapshot_is_blamed_for_it(self, row: int) -> None:
        segment = transactions()
        log = bytearray(segment.parts[Part.LOG])
        log[segment.batches[row].position + 70] ^= 1

        assert {one.code for one in checked(segment, {Part.LOG: bytes(log)}).findings} == {"batch-corrupt"}

    def test_what_follows_the_damage_is_compared_with_the_snapshot(self) -> None:
        segment = transactions()
        log = bytearray(segment.parts[Part.LOG])
        log[segment.batches[2].position + 70] ^= 1
        stale = encode_producer_snapshot([entry._replace(last_sequence=0) for entry in entries_of(segment)])

        findings = checked(segment, {Part.LOG: bytes(log), SNAPSHOT: stale}).findings

        assert sorted(one.code for one in findings) == ["batch-corrupt", "producer-snapshot-damaged"]

"""Each offset once, from the segment that a broker would serve it from."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, made_of, update
from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tests.records.kafka_records import rows_of
from tieredctl.errors import ExitCode
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.layout import Part
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import KnownLine, OnDamage, RecordRequest

SKIPPING = RecordRequest(on_damage=OnDamage.SKIP)
ONE_LEADER = KnownLine([(0, 0)], 0)


def segment(start: int, end: int, leader_epoch: int, epochs_before: Sequence[tuple[int, int]] = ()) -> WrittenSegment:
    """Batches of two records up to, not including, `end`."""
    writer = SegmentWriter(start, leader_epoch=leader_epoch, epochs_before=tuple(epochs_before))
    while writer.next_offset < end:
        writer.append(writer.data(2, 50))
    return writer.close()


def remote_partition(cluster: Cluster, line: KnownLine | None = None) -> RemotePartition:
    caches = replayed(EventStream(EventsInMemory(cluster.events))).caches
    ((partition, cache),) = caches.items()
    return RemotePartition.of(partition, cache, cluster.store(), LAYOUT, line)


def read(cluster: Cluster, line: KnownLine | None = None, request: RecordRequest = SKIPPING) -> PartitionRecords:
    return PartitionRecords(remote_partition(cluster, line), cluster.store(), LAYOUT, request)


def offsets_and_epochs(records: PartitionRecords) -> list[tuple[int, int]]:
    return [(row[0], row[6]) for row in rows_of(records)]


def test_after_an_unclean_election_the_new_leaders_records_are_those_of_the_log() -> None:
    cluster = made_of([segment(0, 100, 0), segment(50, 150, 1, [(0, 0)])])
    expected = [(offset, 0 if offset < 50 else 1) for offset in range(150)]

    by_store, by_leader = read(cluster), read(cluster, KnownLine([(0, 0), (1, 50)], 0))

    assert offsets_and_epochs(by_store) == offsets_and_epochs(by_leader) == expected
    assert (by_store.findings, by_leader.findings) == ([], [])


def test_copies_that_overlap_in_one_epoch_give_each_offset_once() -> None:
    cluster = made_of([segment(0, 100, 0), segment(60, 140, 0), segment(140, 160, 0)])

    assert [offset for offset, _ in offsets_and_epochs(read(cluster, ONE_LEADER))] == list(range(160))


def test_nothing_below_the_log_start() -> None:
    cluster = made_of([segment(0, 100, 0), segment(100, 200, 0)])

    records = read(cluster, KnownLine([(0, 0)], 130))

    assert [offset for offset, _ in offsets_and_epochs(records)] == list(range(130, 200))
    assert records.findings == []


def test_a_hole_that_nothing_explains_is_lost() -> None:
    cluster = made_of([segment(0, 100, 0), segment(120, 200, 0)])

    records = read(cluster, ONE_LEADER)

    assert [offset for offset, _ in offsets_and_epochs(records)] == [*range(100), *range(120, 200)]
    assert [(one.code, one.evidence["offsets"]) for one in records.findings] == [(FindingCode.OFFSET_GAP, [100, 119])]
    assert records.lost_offsets == 20
    assert exit_code_of(records.findings) is ExitCode.CORRUPTION


def test_a_hole_that_retention_made_is_none() -> None:
    first, middle, last = segment(0, 100, 0), segment(100, 120, 0), segment(120, 200, 0)
    cluster = made_of([first, middle, last]).with_events(
        update(middle.metadata, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
    )

    records = read(cluster, ONE_LEADER)

    assert [offset for offset, _ in offsets_and_epochs(records)] == [*range(100), *range(120, 200)]
    assert records.findings == []


def test_without_the_last_checkpoint_the_line_is_doubted_aloud() -> None:
    newer = segment(50, 150, 1, [(0, 0)])
    cluster = made_of([segment(0, 100, 0), newer]).without_part(newer.metadata, Part.LEADER_EPOCH)

    records = read(cluster)

    assert offsets_and_epochs(records) == [(offset, 0 if offset < 50 else 1) for offset in range(150)]
    assert [one.code for one in records.findings] == [FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED]
    assert ".:" not in records.findings[0].message

"""KIP-1176, "Leader Failover and Recovery in an AZ Outage": what a new leader does with what the old one uploaded."""

from __future__ import annotations

from tieredctl_proposals.wal.leadership import deletions_beyond, segments_beyond, upload_from
from tieredctl_proposals.wal.reading import fetch_from_offset

from tests.metadata_logs import COPIED, DELETED, PARTITION, segment_id
from tests.wal.model_partition import ModelPartition
from tests.wal.model_wal import ModelWal, item, uploading
from tests.wal.recoverable import recoverable_end
from tieredctl.model.local_log import LeaderLog
from tieredctl.rlmm.cache import RemoteLogMetadataCache

NOTHING_TIERED = RemoteLogMetadataCache()


def written_by_b1(*ranges: tuple[int, int]) -> ModelWal:
    wal = ModelWal()
    for number, (first, last) in enumerate(ranges):
        wal.do(uploading(wal, [item(number, PARTITION, first, last)], 100 + number))
    return wal


def elect_b2(wal: ModelWal, leader: LeaderLog) -> None:
    known = wal.replayed().partition(PARTITION)
    wal.do(deletions_beyond(known, leader, broker_id=2, leader_epoch=1, clock_ms=wal.clock_ms))


def test_b2_publishes_delete_events_for_metadata_after_its_log_end_messages_6_to_10() -> None:
    wal = written_by_b1((0, 5), (6, 10))

    elect_b2(wal, LeaderLog(0, 0, 6, [(0, 0), (1, 6)]))

    known = wal.replayed()
    readers = known.partition(PARTITION)
    assert [readers.segment_for(0, offset) is not None for offset in range(11)] == [True] * 6 + [False] * 5
    assert {one.segment_id: one.metadata.state for one in known.segments_at(known.rows_of(0))} == {
        segment_id(0): COPIED,
        segment_id(1): DELETED,
    }


def test_a_segment_that_only_begins_in_the_new_leaders_log_is_uploaded_again_up_to_its_end() -> None:
    wal = written_by_b1((0, 3), (4, 10))
    leader = LeaderLog(0, 0, 6, [(0, 0), (1, 6)])

    elect_b2(wal, leader)

    assert upload_from(wal.replayed().partition(PARTITION), NOTHING_TIERED, leader) == 4


def test_segments_of_the_same_line_of_leaders_stay() -> None:
    wal = written_by_b1((0, 5))
    known = wal.replayed().partition(PARTITION)

    assert not segments_beyond(known, LeaderLog(0, 0, 6, [(0, 0), (1, 6)]))
    assert not segments_beyond(known, LeaderLog(6, 6, 9, [(1, 6)]))  # whose epochs the log start has passed


def test_what_another_line_of_leaders_wrote_goes_even_below_the_log_end() -> None:
    wal = written_by_b1((0, 5), (6, 10))
    leader = LeaderLog(0, 0, 20, [(0, 0), (1, 6)])

    assert [one.segment_id for one in segments_beyond(wal.replayed().partition(PARTITION), leader)] == [segment_id(1)]


def test_of_leaders_that_the_log_start_has_passed_only_what_is_beyond_the_log_end_goes() -> None:
    wal = written_by_b1((0, 5), (6, 10))
    leader = LeaderLog(6, 6, 8, [(1, 6)])

    assert [one.segment_id for one in segments_beyond(wal.replayed().partition(PARTITION), leader)] == [segment_id(1)]


def test_what_another_line_of_leaders_uploaded_counts_neither_as_uploaded_nor_as_recoverable() -> None:
    readers = written_by_b1((0, 5), (6, 10)).replayed().partition(PARTITION)
    straddling = written_by_b1((0, 10)).replayed().partition(PARTITION)
    leader = LeaderLog(0, 0, 20, [(0, 0), (1, 6)])

    assert upload_from(readers, NOTHING_TIERED, leader) == 6
    assert recoverable_end(readers, NOTHING_TIERED, leader.leader_epochs, 0) == 6
    assert recoverable_end(straddling, NOTHING_TIERED, leader.leader_epochs, 0) == 6


def test_what_the_old_leader_reports_after_the_new_one_spoke_is_not_heard() -> None:
    wal = written_by_b1((0, 5))
    late = list(uploading(wal, [item(7, PARTITION, 6, 10)], 107))
    wal.do(late[:3])
    elect_b2(wal, LeaderLog(0, 0, 6, [(0, 0), (1, 6)]))
    wal.do(uploading(wal, [item(8, PARTITION, 6, 8, leader_epoch=1)], 108))

    wal.do(late[3:])

    readers = wal.replayed().partition(PARTITION)
    assert readers.segment_for(0, 6) is None
    found = readers.segment_for(1, 6)
    assert found is not None
    assert found.segment_id == segment_id(8)


def test_the_next_upload_begins_after_the_last_offset_that_was_uploaded() -> None:
    wal, log = written_by_b1((0, 5)), ModelPartition(PARTITION)
    for _ in range(3):
        log.append(5, wal.now_ms)

    assert upload_from(wal.replayed().partition(PARTITION), log.tiered, log.leader) == 6
    log.tier(2)
    assert upload_from(wal.replayed().partition(PARTITION), log.tiered, log.leader) == 10
    log.tier(3)
    log.delete_local(3)
    assert upload_from(ModelWal().replayed().partition(PARTITION), NOTHING_TIERED, log.leader) == 15


def test_cloud_native_elasticity_a_new_broker_rebuilds_the_log_from_both_tiers() -> None:
    log, wal = ModelPartition(PARTITION), ModelWal()
    for _ in range(4):
        log.append(5, wal.now_ms)
    log.tier(2)
    log.elect(1)
    log.append(5, wal.now_ms)
    for number, one in enumerate(log.log[1:]):
        queued = item(number, PARTITION, 0, 0, leader_epoch=one.leader_epoch, records=one.data)
        wal.do(uploading(wal, [queued], 100 + number))

    readers = wal.replayed().partition(PARTITION)

    assert recoverable_end(readers, log.tiered, log.epochs, 0) == log.end == 20
    assert recoverable_end(readers, NOTHING_TIERED, log.epochs, 0) == 0
    assert recoverable_end(readers, NOTHING_TIERED, log.epochs, 5) == 20
    for one in log.log[1:]:
        segment = readers.segment_for(one.leader_epoch, one.first)
        assert segment is not None
        assert fetch_from_offset(wal.store, segment, one.first, 1).data == one.data

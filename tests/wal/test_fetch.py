"""KIP-1176, "Replication and Download on follower broker" and "Producer Path": who gets an offset from where."""

from __future__ import annotations

import pytest
from tieredctl_proposals.wal.deletion import deletion_steps
from tieredctl_proposals.wal.fetch import FetchedFrom, consumer_wal_fetch, follower_wal_fetch
from tieredctl_proposals.wal.places import object_key

from tests.metadata_logs import DELETED, DELETING, PARTITION, segment_id
from tests.wal.model_partition import ModelPartition
from tests.wal.model_wal import ModelWal, item, uploading
from tieredctl.model.local_log import LeaderLog
from tieredctl.rlmm.cache import RemoteLogMetadataCache

NOTHING_TIERED = RemoteLogMetadataCache()


def cluster(
    batches: int = 6, tiered: int = 2, local_deleted: int = 1, uploaded: int = 5
) -> tuple[ModelPartition, ModelWal]:
    """Batches of five records: the first ones in remote storage, the very first no longer on disk, all but the last in
    the WAL tier, each in an object of its own."""
    log, wal = ModelPartition(PARTITION), ModelWal()
    for _ in range(batches):
        log.append(5, wal.now_ms)
    log.tier(tiered)
    log.delete_local(local_deleted)
    for number, one in enumerate(log.log[:uploaded]):
        wal.do(uploading(wal, [item(number, PARTITION, 0, 0, records=one.data)], 100 + number))
    return log, wal


@pytest.mark.parametrize(
    ("offset", "source"),
    [
        (0, FetchedFrom.OFFSET_MOVED_TO_TIERED_STORAGE),
        (4, FetchedFrom.OFFSET_MOVED_TO_TIERED_STORAGE),
        (5, FetchedFrom.WAL),
        (24, FetchedFrom.WAL),
        (25, FetchedFrom.WAITS_FOR_UPLOAD),
        (29, FetchedFrom.WAITS_FOR_UPLOAD),
        (30, FetchedFrom.WAITS_FOR_RECORDS),
        (31, FetchedFrom.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_follower_takes_records_from_the_object_that_the_metadata_names_never_from_its_leader(
    offset: int, source: FetchedFrom
) -> None:
    log, wal = cluster()

    found = follower_wal_fetch(log.leader, wal.replayed().partition(PARTITION), offset)

    assert found.source is source
    assert (found.key is not None) == (source is FetchedFrom.WAL)


def test_explain_the_object_and_the_range_that_serve_an_offset() -> None:
    log, wal = cluster()

    found = follower_wal_fetch(log.leader, wal.replayed().partition(PARTITION), 12)

    assert found.wal is not None
    assert found.key == object_key(segment_id(102))
    assert wal.store.read(found.key, found.wal.start_file_position, found.wal.end_file_position + 1) == log.log[2].data
    assert found.leader_epoch == 0


@pytest.mark.parametrize(
    ("offset", "source"),
    [(0, FetchedFrom.REMOTE), (5, FetchedFrom.LOCAL), (29, FetchedFrom.LOCAL), (30, FetchedFrom.WAITS_FOR_RECORDS)],
)
def test_a_consumer_is_served_from_the_brokers_disk_and_from_remote_storage_as_with_kip_405(
    offset: int, source: FetchedFrom
) -> None:
    log, wal = cluster()

    found = consumer_wal_fetch(log.leader, log.tiered, wal.replayed().partition(PARTITION), offset)

    assert found.source is source
    assert (found.remote is not None) == (source is FetchedFrom.REMOTE)


def test_a_consumer_of_a_leader_that_rebuilds_its_log_is_served_from_the_wal_tier_what_remote_storage_lacks() -> None:
    log, wal = cluster()
    rebuilding = LeaderLog(0, 25, 30, [(0, 0)])
    readers = wal.replayed().partition(PARTITION)

    sources = [consumer_wal_fetch(rebuilding, log.tiered, readers, offset).source for offset in range(0, 30, 5)]

    assert sources == [*[FetchedFrom.REMOTE] * 2, *[FetchedFrom.WAL] * 3, FetchedFrom.LOCAL]


def test_what_neither_tier_has_is_out_of_range() -> None:
    rebuilding = LeaderLog(0, 25, 30, [(0, 0)])

    found = consumer_wal_fetch(rebuilding, NOTHING_TIERED, ModelWal().replayed().partition(PARTITION), 10)

    assert found.source is FetchedFrom.OFFSET_OUT_OF_RANGE


def test_no_reader_is_sent_to_an_object_whose_deletion_was_announced() -> None:
    log, wal = cluster()
    for steps, state in ((1, DELETING), (None, DELETED)):
        wal.do(deletion_steps(wal.replayed(), segment_id(102), broker_id=3, clock_ms=wal.clock_ms), steps)

        known = wal.replayed()
        assert {one.metadata.state for one in known.segments_in(segment_id(102))} == {state}
        assert follower_wal_fetch(log.leader, known.partition(PARTITION), 12).source is FetchedFrom.WAITS_FOR_UPLOAD


def test_a_consumer_that_believes_in_another_line_of_leaders_is_told_so() -> None:
    log, wal = cluster()
    log.elect(0)

    found = consumer_wal_fetch(log.leader, log.tiered, wal.replayed().partition(PARTITION), 12, believed_epoch=7)

    assert found.source is FetchedFrom.LOG_TRUNCATED

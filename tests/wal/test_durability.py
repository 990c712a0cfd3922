"""KIP-1176, "Producer Acknowledgement" and "Data Durability": what is lost at most when a leader is lost for good."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tieredctl_proposals.wal.combiner import Combiner, CombinerSettings, UploadCause
from tieredctl_proposals.wal.durability import Acknowledgement, ReplicatedLog

from tests.metadata_logs import PARTITION
from tests.wal.model_wal import batch, item

ENDS = st.integers(0, 1_000)


@st.composite
def logs(draw: st.DrawFn) -> ReplicatedLog:
    """Records go from the leader to the object store, and from there to followers."""
    uploaded, leader, *followers = sorted(draw(st.lists(ENDS, min_size=2, max_size=5)), reverse=True)
    uploaded, leader = sorted((uploaded, leader))
    return ReplicatedLog(leader, uploaded, {number: min(end, uploaded) for number, end in enumerate(followers, 2)})


@given(logs())
def test_acks_1_the_data_that_is_lost_is_what_was_waiting_to_be_written_to_object_storage(
    log: ReplicatedLog,
) -> None:
    lost = log.lost(Acknowledgement.LEADER, elected=None)

    assert lost == range(log.uploaded_end, log.leader_end)


@given(logs())
def test_acks_1_a_follower_that_does_not_catch_up_loses_the_second_hop_as_well(log: ReplicatedLog) -> None:
    for follower, end in log.follower_ends.items():
        lost = log.lost(Acknowledgement.LEADER, follower, catches_up=False)

        assert lost == range(end, log.leader_end)
        assert log.lost(Acknowledgement.LEADER, follower) == range(log.uploaded_end, log.leader_end)


@given(logs())
def test_acks_1_no_consumer_read_what_is_lost(log: ReplicatedLog) -> None:
    for follower in log.follower_ends:
        assert log.high_watermark <= log.end_after_loss(follower, catches_up=False)


@given(logs())
def test_acks_all_option_1_nothing_is_lost_with_any_in_sync_follower_even_without_the_store(log: ReplicatedLog) -> None:
    for follower in log.follower_ends:
        assert not log.lost(Acknowledgement.IN_SYNC_REPLICAS, follower, catches_up=False)


@given(logs())
def test_acks_all_option_2_nothing_is_lost_if_the_new_leader_catches_up_with_the_object_store(
    log: ReplicatedLog,
) -> None:
    for elected in (None, *log.follower_ends):
        assert not log.lost(Acknowledgement.OBJECT_STORE, elected)


def test_acks_all_option_2_without_catching_up_acknowledged_records_are_lost() -> None:
    log = ReplicatedLog(leader_end=11, uploaded_end=11, follower_ends={2: 6})

    assert log.lost(Acknowledgement.OBJECT_STORE, 2, catches_up=False) == range(6, 11)


def test_role_of_object_storage_with_replication_factor_1_a_new_broker_is_bootstrapped_from_it() -> None:
    log = ReplicatedLog(leader_end=100, uploaded_end=90, follower_ends={})

    assert log.end_after_loss(None) == 90
    assert log.lost(Acknowledgement.OBJECT_STORE, None) == range(90, 90)


def test_data_durability_the_loss_window_doubles_from_10_to_20_ms() -> None:
    records_per_ms, hop_ms = 15, 10
    now = 1_000
    today = ReplicatedLog(now * records_per_ms, 0, {2: (now - hop_ms) * records_per_ms})
    proposed = ReplicatedLog(
        now * records_per_ms, (now - hop_ms) * records_per_ms, {2: (now - 2 * hop_ms) * records_per_ms}
    )

    lost = [len(one.lost(Acknowledgement.LEADER, 2, catches_up=False)) // records_per_ms for one in (today, proposed)]

    assert lost == [10, 20]


def test_workload_example_30_mb_a_second_every_10_ms_is_100_uploads_a_second_of_300_kb() -> None:
    combiner = Combiner(CombinerSettings(interval_ms=10, upload_bytes=500_000))
    one_ms = item(1, PARTITION, 0, 0, records=batch(0, 0, size=30_000))
    uploads = []
    for now_ms in range(1_000):
        if upload := combiner.next_upload(now_ms):
            uploads.append(upload)
        combiner.offer(one_ms, now_ms)

    sizes = {sum(len(one.records) for one in upload.items) for upload in uploads}
    assert 99 <= len(uploads) <= 100
    assert all(300_000 <= size <= 301_000 for size in sizes)
    assert {upload.cause for upload in uploads} == {UploadCause.QUICK}

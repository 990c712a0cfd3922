"""KIP-1023, "High-Level Design", "ReplicaFetcher Changes" and "Follower Fetch Scenarios", case by case."""

from __future__ import annotations

from tests.partition_states import follower, leader, remote, uuid
from tieredctl.rlmm.follower_fetch import FetchError, FollowerAction, FollowerFetch, FollowerWait, follower_fetch

MOVED, OUT_OF_RANGE = FetchError.OFFSET_MOVED_TO_TIERED_STORAGE, FetchError.OFFSET_OUT_OF_RANGE
LINEAGE = {0: 0, 1: 3, 2: 5, 3: 7}
SEGMENTS = ((0, 2, {0: 0}), (3, 5, {1: 3, 2: 5}))


def learned(way: FollowerFetch, action: FollowerAction) -> tuple[int | None, int | None]:
    (step,) = (step for step in way.steps if step.action is action)
    return step.offset, step.leader_epoch


def test_recap_case_1_an_offset_that_the_leader_still_has_is_fetched_though_it_is_uploaded() -> None:
    way = follower_fetch(leader(range(8), LINEAGE, pending_upload=6), remote(*SEGMENTS), from_last_tiered_offset=True)

    assert way.first_error is None
    assert way.fetch_offset == 0


def test_recap_case_2_1_below_the_log_start_the_follower_starts_at_the_log_start() -> None:
    way = follower_fetch(leader(range(3, 8), LINEAGE, log_start=3), remote(*SEGMENTS))

    assert way.first_error is OUT_OF_RANGE
    assert learned(way, FollowerAction.LEARN_EARLIEST) == (3, None)
    assert way.fetch_offset == 3


def test_recap_case_2_2_an_offset_in_tiered_storage_makes_the_follower_start_at_the_local_log_start() -> None:
    way = follower_fetch(leader(range(3, 8), LINEAGE), remote(*SEGMENTS))

    assert way.first_error is MOVED
    assert way.fetch_offset == 3


def test_change_to_case_2_1_an_empty_follower_starts_at_the_earliest_pending_upload_offset() -> None:
    broker_a = leader(range(5, 8), LINEAGE, log_start=3, pending_upload=6)

    way = follower_fetch(broker_a, remote(*SEGMENTS), from_last_tiered_offset=True)

    assert way.first_error is OUT_OF_RANGE
    assert learned(way, FollowerAction.LEARN_EARLIEST) == (3, None)
    assert way.fetch_offset == 6


def test_change_applies_only_when_the_follower_is_empty() -> None:
    broker_a = leader(range(5, 8), LINEAGE, pending_upload=6)

    way = follower_fetch(broker_a, remote(*SEGMENTS), follower(2, {0: 0}), from_last_tiered_offset=True)

    assert way.first_error is MOVED
    assert FollowerAction.LEARN_EARLIEST_PENDING_UPLOAD not in [step.action for step in way.steps]
    assert learned(way, FollowerAction.LEARN_EARLIEST_LOCAL) == (5, 2)


def test_replica_fetcher_unknown_offset_while_nothing_is_uploaded_takes_the_local_log_start() -> None:
    broker_a = leader(range(3, 8), LINEAGE, log_start=3)

    way = follower_fetch(broker_a, remote(), from_last_tiered_offset=True)

    assert learned(way, FollowerAction.LEARN_EARLIEST_PENDING_UPLOAD) == (None, None)
    assert learned(way, FollowerAction.LEARN_EARLIEST_LOCAL) == (3, 1)
    assert learned(way, FollowerAction.FIND_REMOTE_SEGMENT) == (2, 0)


def test_replica_fetcher_kafka_waits_for_the_first_upload_where_the_log_does_not_begin_at_0() -> None:
    broker_a = leader(range(3, 8), LINEAGE, log_start=3, pending_upload=3)

    way = follower_fetch(broker_a, remote(), from_last_tiered_offset=True)

    assert way.wait is FollowerWait.REMOTE_SEGMENT_UNKNOWN
    assert way.fetch_offset is None


def test_replica_fetcher_unknown_offset_while_segments_are_uploaded_is_tried_again() -> None:
    way = follower_fetch(leader(range(3, 8), LINEAGE), remote(*SEGMENTS), from_last_tiered_offset=True)

    assert learned(way, FollowerAction.LEARN_EARLIEST_PENDING_UPLOAD) == (None, None)
    assert way.steps[-1].action is FollowerAction.TRY_AGAIN
    assert way.wait is FollowerWait.PENDING_UPLOAD_UNKNOWN
    assert way.fetch_offset is None


def test_replica_fetcher_offset_below_the_log_start_truncates_and_replicates_all_that_is_local() -> None:
    broker_a = leader(range(7, 9), LINEAGE, log_start=7, pending_upload=6)

    way = follower_fetch(broker_a, remote(), from_last_tiered_offset=True)

    assert [step.action for step in way.steps[-2:]] == [
        FollowerAction.TRUNCATE_FULLY_AND_START_AT,
        FollowerAction.FETCH,
    ]
    assert way.fetch_offset == 7


def test_scenario_step_1_the_follower_builds_its_leader_epochs_up_to_the_earliest_pending_upload_offset() -> None:
    broker_a = leader(range(3, 8), LINEAGE, pending_upload=6)

    broker_b = follower_fetch(broker_a, remote(*SEGMENTS), from_last_tiered_offset=True)

    assert broker_b.first_error is MOVED
    assert learned(broker_b, FollowerAction.LEARN_EARLIEST_PENDING_UPLOAD) == (6, 2)
    assert broker_b.segment_id == uuid(2)
    assert broker_b.leader_epochs == ((0, 0), (1, 3), (2, 5))


def test_scenario_step_2_the_follower_fetches_from_the_earliest_pending_upload_offset() -> None:
    broker_a = leader(range(3, 8), LINEAGE, pending_upload=6)

    broker_b = follower_fetch(broker_a, remote(*SEGMENTS), from_last_tiered_offset=True)

    assert broker_b.fetch_offset == 6

"""KIP-405, "Follower fetch scenarios(including truncation cases)", scenario by scenario and step by step."""

from __future__ import annotations

from tests.partition_states import follower, leader, remote, uuid
from tieredctl.rlmm.consumer_fetch import ConsumerFetchOutcome, consumer_fetch
from tieredctl.rlmm.follower_fetch import FetchError, FollowerAction, FollowerFetch, follower_fetch, truncation_offset

MOVED = FetchError.OFFSET_MOVED_TO_TIERED_STORAGE
LINEAGE = {0: 0, 1: 3, 2: 5, 3: 7}
SEGMENTS = ((0, 2, {0: 0}), (3, 5, {1: 3, 2: 5}))


def learned(way: FollowerFetch, action: FollowerAction) -> tuple[int | None, int | None]:
    """Offset and leader epoch of a step."""
    (step,) = (step for step in way.steps if step.action is action)
    return step.offset, step.leader_epoch


def test_scenario_1_step_1_a_new_empty_follower_builds_its_state_up_to_the_earliest_local_offset() -> None:
    broker_a = leader(range(3, 8), LINEAGE)

    broker_b = follower_fetch(broker_a, remote(*SEGMENTS))

    assert broker_b.first_error is MOVED
    assert learned(broker_b, FollowerAction.LEARN_EARLIEST_LOCAL) == (3, 1)
    assert broker_b.leader_epochs == ((0, 0), (1, 3))


def test_scenario_1_step_2_the_new_follower_fetches_from_the_earliest_local_offset() -> None:
    broker_a = leader(range(3, 8), LINEAGE)

    broker_b = follower_fetch(broker_a, remote(*SEGMENTS))

    assert broker_b.fetch_offset == 3
    assert [step.action for step in broker_b.steps] == [
        FollowerAction.FETCH,
        FollowerAction.LEARN_EARLIEST_LOCAL,
        FollowerAction.LEARN_EPOCH_END_OFFSET,
        FollowerAction.FIND_REMOTE_SEGMENT,
        FollowerAction.TRUNCATE_FULLY_AND_START_AT,
        FollowerAction.BUILD_AUXILIARY_STATE,
        FollowerAction.FETCH,
    ]


def test_scenario_2_1_a_follower_whose_next_offset_is_local_on_the_leader_fetches_as_ever() -> None:
    broker_a = leader(range(3, 10), LINEAGE)

    broker_b = follower_fetch(broker_a, remote(*SEGMENTS), follower(4, {0: 0, 1: 3}))

    assert broker_b.first_error is None
    assert broker_b.fetch_offset == 4
    assert [step.action for step in broker_b.steps] == [FollowerAction.FETCH]


def test_scenario_2_2_step_1_an_out_of_sync_follower_of_the_same_line_truncates_nothing() -> None:
    broker_a = leader(range(10), LINEAGE)
    broker_b = follower(4, {0: 0, 1: 3})

    assert truncation_offset(broker_a, broker_b) == 4


def test_scenario_2_2_step_2_its_offset_has_moved_and_it_learns_the_earliest_local_offset() -> None:
    broker_a = leader(range(9, 12), LINEAGE)
    segments = remote(*SEGMENTS, (6, 8, {2: 6, 3: 7}))

    broker_b = follower_fetch(broker_a, segments, follower(4, {0: 0, 1: 3}))

    assert broker_b.steps[0].offset == 4
    assert broker_b.first_error is MOVED
    assert learned(broker_b, FollowerAction.LEARN_EARLIEST_LOCAL) == (9, 3)


def test_scenario_2_2_step_3_it_rebuilds_its_leader_epochs_and_continues_as_a_new_follower() -> None:
    broker_a = leader(range(9, 12), LINEAGE)
    segments = remote(*SEGMENTS, (6, 8, {2: 6, 3: 7}))

    broker_b = follower_fetch(broker_a, segments, follower(4, {0: 0, 1: 3}))

    assert broker_b.segment_id == uuid(3)
    assert broker_b.leader_epochs == ((0, 0), (1, 3), (2, 5), (3, 7))
    assert broker_b.fetch_offset == 9


def test_scenario_3_step_3_after_hard_failures_the_old_leader_truncates_what_the_new_one_does_not_have() -> None:
    broker_b = leader(range(2), {0: 0, 1: 1})
    broker_a = follower(3, {0: 0})

    assert truncation_offset(broker_b, broker_a) == 1
    assert follower_fetch(broker_b, remote((0, 1, {0: 0})), broker_a).fetch_offset == 1


AFTER_SCENARIO_3 = leader(range(3, 3), {0: 0, 1: 1})
SCENARIO_3_SEGMENTS = ((0, 1, {0: 0}), (1, 1, {1: 1}))


def test_scenario_3_step_4_offset_0_of_epoch_0_comes_from_the_first_segment() -> None:
    read = consumer_fetch(AFTER_SCENARIO_3, remote(*SCENARIO_3_SEGMENTS), 0, believed_epoch=0)

    assert read.outcome is ConsumerFetchOutcome.REMOTE_READ
    assert read.segment is not None
    assert read.segment.metadata.segment_id == uuid(1)


def test_scenario_3_step_4_offset_1_without_an_epoch_comes_from_the_line_of_the_leader() -> None:
    read = consumer_fetch(AFTER_SCENARIO_3, remote(*SCENARIO_3_SEGMENTS), 1)

    assert (read.outcome, read.leader_epoch) == (ConsumerFetchOutcome.REMOTE_READ, 1)
    assert read.segment is not None
    assert read.segment.metadata.segment_id == uuid(2)


def test_scenario_3_step_4_offset_2_of_epoch_0_is_fenced() -> None:
    read = consumer_fetch(AFTER_SCENARIO_3, remote(*SCENARIO_3_SEGMENTS), 2, believed_epoch=0)

    assert read.outcome is ConsumerFetchOutcome.LOG_TRUNCATED


def test_scenario_3_step_4_offset_1_of_epoch_1_comes_from_the_second_segment() -> None:
    read = consumer_fetch(AFTER_SCENARIO_3, remote(*SCENARIO_3_SEGMENTS), 1, believed_epoch=1)

    assert read.segment is not None
    assert read.segment.metadata.segment_id == uuid(2)


SCENARIO_4 = leader(range(2, 3), {0: 0, 1: 1})
SCENARIO_4_SEGMENTS = ((0, 2, {0: 0}), (0, 1, {0: 0, 1: 1}))


def test_scenario_4_step_3_offset_0_may_come_from_either_segment() -> None:
    read = consumer_fetch(SCENARIO_4, remote(*SCENARIO_4_SEGMENTS), 0, believed_epoch=0)

    assert read.segment is not None
    assert read.segment.metadata.segment_id in (uuid(1), uuid(2))


def test_scenario_4_step_3_offset_1_without_an_epoch_comes_from_what_the_unclean_leader_wrote() -> None:
    read = consumer_fetch(SCENARIO_4, remote(*SCENARIO_4_SEGMENTS), 1)

    assert read.leader_epoch == 1
    assert read.segment is not None
    assert read.segment.metadata.segment_id == uuid(2)


def test_scenario_4_step_3_offset_1_of_epoch_1_comes_from_the_same() -> None:
    read = consumer_fetch(SCENARIO_4, remote(*SCENARIO_4_SEGMENTS), 1, believed_epoch=1)

    assert read.segment is not None
    assert read.segment.metadata.segment_id == uuid(2)


def test_scenario_4_step_3_offset_2_of_epoch_0_is_fenced() -> None:
    read = consumer_fetch(SCENARIO_4, remote(*SCENARIO_4_SEGMENTS), 2, believed_epoch=0)

    assert read.outcome is ConsumerFetchOutcome.LOG_TRUNCATED


SCENARIO_5 = leader(range(6, 7), {0: 0, 2: 5})
SCENARIO_5_SEGMENTS = ((0, 3, {0: 0}), (0, 3, {0: 0, 1: 2}), (4, 5, {0: 4, 2: 5}))


def test_scenario_5_step_4_a_reimaged_follower_takes_the_epochs_of_the_segment_that_has_the_leaders_epoch() -> None:
    broker_b = follower_fetch(SCENARIO_5, remote(*SCENARIO_5_SEGMENTS))

    assert broker_b.first_error is MOVED
    assert learned(broker_b, FollowerAction.LEARN_EARLIEST_LOCAL) == (6, 2)
    assert broker_b.segment_id == uuid(3)
    assert broker_b.leader_epochs == ((0, 0), (2, 5))
    assert broker_b.fetch_offset == 6


def test_scenario_5_step_4_offset_3_of_the_epoch_that_was_lost_is_fenced() -> None:
    read = consumer_fetch(SCENARIO_5, remote(*SCENARIO_5_SEGMENTS), 3, believed_epoch=1)

    assert read.outcome is ConsumerFetchOutcome.LOG_TRUNCATED


def test_scenario_5_step_4_offset_2_without_an_epoch_is_of_epoch_0() -> None:
    read = consumer_fetch(SCENARIO_5, remote(*SCENARIO_5_SEGMENTS), 2)

    assert read.leader_epoch == 0

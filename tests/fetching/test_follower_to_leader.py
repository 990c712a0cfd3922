"""KIP-405, "Follower to leader transition"."""

from __future__ import annotations

from tests.partition_states import remote
from tieredctl.rlmm.consumer_fetch import highest_remote_offset

SEGMENTS = ((0, 2, {0: 0}), (3, 4, {1: 3}))


def test_step_2_the_new_leader_goes_back_to_the_epoch_that_was_copied_last() -> None:
    broker_b = ((0, 0), (1, 3), (2, 6), (3, 7))

    assert highest_remote_offset(broker_b, 8, remote(*SEGMENTS)) == 4


def test_without_an_entry_it_starts_from_the_earliest_epoch() -> None:
    broker_b = ((0, 0), (1, 3))

    assert highest_remote_offset(broker_b, 8, remote()) is None


def test_what_another_line_of_leaders_copied_beyond_the_epochs_end_does_not_count() -> None:
    broker_b = ((0, 0), (1, 2))

    assert highest_remote_offset(broker_b, 2, remote((0, 9, {0: 0}))) == 1

"""Leader epochs of a log, as LeaderEpochFileCache answers for them; with the gap that Kafka's TierStateMachine tells
of."""

from __future__ import annotations

from tieredctl.rlmm.lineage import EpochEndOffset, end_offset_for, epoch_for_offset

LINEAGE = ((0, 20), (1, 85), (3, 90), (4, 98))
END = 120


def test_an_offset_has_the_epoch_that_began_at_it_or_before_and_below_the_first_none() -> None:
    epochs = {20: 0, 84: 0, 85: 1, 89: 1, 90: 3, 500: 4, 19: None}
    assert {offset: epoch_for_offset(LINEAGE, offset) for offset in epochs} == epochs
    assert epoch_for_offset((), 0) is None


def test_an_epoch_ends_where_the_next_one_began() -> None:
    """One without records is answered by the one before, the latest ends with the log, and above it is no answer."""
    ends = {1: EpochEndOffset(1, 90), 2: EpochEndOffset(1, 90), 4: EpochEndOffset(4, END), 5: None}
    assert {epoch: end_offset_for(LINEAGE, epoch, END) for epoch in ends} == ends
    assert end_offset_for((), 0, END) is None


def test_below_the_first_epoch_the_answer_is_where_that_began() -> None:
    assert end_offset_for(((2, 30),), 1, END) == EpochEndOffset(1, 30)

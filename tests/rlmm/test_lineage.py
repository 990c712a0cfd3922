"""Leader epochs of a log, as LeaderEpochFileCache answers for them; with the gap that Kafka's TierStateMachine tells
of."""

from __future__ import annotations

from tieredctl.rlmm.lineage import EpochEndOffset, end_offset_for, epoch_for_offset

LINEAGE = ((0, 20), (1, 85), (3, 90), (4, 98))
END = 120


def test_an_offset_has_the_epoch_that_began_at_it_or_before() -> None:
    assert [epoch_for_offset(LINEAGE, offset) for offset in (20, 84, 85, 89, 90, 500)] == [0, 0, 1, 1, 3, 4]


def test_below_the_first_epoch_none_is_known() -> None:
    assert epoch_for_offset(LINEAGE, 19) is None
    assert epoch_for_offset((), 0) is None


def test_an_epoch_ends_where_the_next_one_began() -> None:
    assert end_offset_for(LINEAGE, 1, END) == EpochEndOffset(1, 90)


def test_an_epoch_without_records_is_answered_by_the_one_before() -> None:
    assert end_offset_for(LINEAGE, 2, END) == EpochEndOffset(1, 90)


def test_the_latest_epoch_ends_with_the_log() -> None:
    assert end_offset_for(LINEAGE, 4, END) == EpochEndOffset(4, END)


def test_above_the_latest_epoch_there_is_no_answer() -> None:
    assert end_offset_for(LINEAGE, 5, END) is None
    assert end_offset_for((), 0, END) is None


def test_below_the_first_epoch_the_answer_is_where_that_began() -> None:
    assert end_offset_for(((2, 30),), 1, END) == EpochEndOffset(1, 30)

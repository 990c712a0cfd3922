"""KIP-1176, "Life Cycle of the active log segments on the cloud storage": when a combined object may go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tieredctl_proposals.wal.deletion import deletion_steps, segment_deletions
from tieredctl_proposals.wal.lifecycle import JudgedObject, Need, PartitionFacts, judge_objects
from tieredctl_proposals.wal.tiered_ranges import EpochRanges, TieredRanges

from tests.conftest import examples
from tests.event_histories import PARTITIONS, TEMPERS, by_columns, random_histories
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, segment_id
from tests.wal.model_wal import ModelWal, item, uploading
from tests.wal_histories import OTHER
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition

HOUR = 3_600_000
TIERED_TOPIC = PartitionFacts(0, is_tiered=True, local_retention_ms=HOUR)
LOCAL_TOPIC = PartitionFacts(0, is_tiered=False, local_retention_ms=HOUR)
COMBINED = segment_id(100)
ITEMS = [item(1, PARTITION, 0, 9), item(2, OTHER, 50, 59)]
Tiered = Mapping[TopicIdPartition, list[tuple[int, int, int]]]
"""Leader epoch, first and last offset."""


def uploaded(steps: int | None = None) -> ModelWal:
    wal = ModelWal()
    wal.do(uploading(wal, ITEMS, 100), steps)
    return wal


def judged(
    wal: ModelWal,
    tiered: Tiered | None = None,
    facts: Mapping[TopicIdPartition, PartitionFacts] | None = None,
    after_ms: int = 60_000,
) -> JudgedObject:
    known = wal.replayed()
    ranges = [(known.events.partitions[one], *each) for one, all_of in (tiered or {}).items() for each in all_of]
    columns = EpochRanges(*np.array(ranges, np.int64).reshape(-1, 4).T)
    objects = judge_objects(
        known,
        TieredRanges(columns),
        {PARTITION: TIERED_TOPIC, OTHER: TIERED_TOPIC} if facts is None else facts,
        now_ms=FIRST_TIMESTAMP_MS + after_ms,
        give_up_after_ms=10 * 60_000,
    )
    return next(one for one in objects.objects(np.arange(len(objects))) if one.combined_segment_id == COMBINED)


def needs(one: JudgedObject) -> list[Need]:
    by_partition = {partition: need for partition, _, need in one.segments}
    return [by_partition[PARTITION], by_partition[OTHER]]


def test_the_object_waits_until_segments_of_all_partitions_are_uploaded_to_long_term_storage() -> None:
    wal = uploaded()

    assert needs(judged(wal)) == [Need.NEEDED, Need.NEEDED]
    first = judged(wal, {PARTITION: [(0, 0, 20)]})
    assert (needs(first), first.need.may_go) == ([Need.TIERED, Need.NEEDED], False)
    both = judged(wal, {PARTITION: [(0, 0, 20)], OTHER: [(0, 40, 54), (0, 55, 59)]})
    assert (needs(both), both.need.may_go) == ([Need.TIERED, Need.TIERED], True)


@pytest.mark.parametrize("ranges", [[(0, 0, 8)], [(0, 1, 9)], [(0, 0, 3), (0, 5, 9)], [(1, 0, 9)], []])
def test_what_is_tiered_in_part_or_under_another_leader_epoch_is_needed(ranges: list[tuple[int, int, int]]) -> None:
    assert needs(judged(uploaded(), {PARTITION: ranges}))[0] is Need.NEEDED


def test_the_retention_is_the_max_of_all_topics_local_retention_ms_in_the_object() -> None:
    longer = {PARTITION: TIERED_TOPIC, OTHER: TIERED_TOPIC._replace(local_retention_ms=3 * HOUR)}

    assert needs(judged(uploaded(), facts=longer, after_ms=3 * HOUR)) == [Need.NEEDED, Need.NEEDED]
    assert needs(judged(uploaded(), facts=longer, after_ms=3 * HOUR + 1)) == [Need.OVERDUE, Need.OVERDUE]


def test_past_that_retention_what_is_only_assumed_to_be_uploaded_is_kept_and_told() -> None:
    """By the proposal's text it would go: "they are assumed to uploaded to slow tiered storage already"."""
    found = judged(uploaded(), {PARTITION: [(0, 0, 9)]}, after_ms=24 * HOUR)

    assert (needs(found), found.need, found.need.may_go) == ([Need.TIERED, Need.OVERDUE], Need.OVERDUE, False)


def test_of_a_topic_without_kip_405_records_go_with_their_retention() -> None:
    local = {PARTITION: LOCAL_TOPIC, OTHER: LOCAL_TOPIC._replace(local_retention_ms=2 * HOUR)}

    assert needs(judged(uploaded(), facts=local, after_ms=HOUR + 1)) == [Need.PAST_RETENTION, Need.NEEDED]
    assert judged(uploaded(), facts=local, after_ms=2 * HOUR + 1).need.may_go


@pytest.mark.parametrize("retention_ms", [-1, None])
def test_without_a_limit_or_without_knowing_it_nothing_gets_too_old(retention_ms: int | None) -> None:
    facts = {
        PARTITION: TIERED_TOPIC._replace(local_retention_ms=retention_ms),
        OTHER: LOCAL_TOPIC._replace(local_retention_ms=retention_ms),
    }

    assert needs(judged(uploaded(), facts=facts, after_ms=10_000 * HOUR)) == [Need.NEEDED, Need.NEEDED]


def test_a_partition_that_nothing_is_known_of_is_needed_for_ever() -> None:
    assert needs(judged(uploaded(), facts={}, after_ms=10_000 * HOUR)) == [Need.NEEDED, Need.NEEDED]


def test_the_age_is_that_of_the_latest_record_or_event_whichever_is_later() -> None:
    future = replace(ITEMS[0].metadata, max_timestamp_ms=FIRST_TIMESTAMP_MS + 5 * HOUR)
    wal = ModelWal()
    wal.do(uploading(wal, [ITEMS[0]._replace(metadata=future)], 100))

    found = judged(wal, facts={PARTITION: LOCAL_TOPIC}, after_ms=6 * HOUR)

    assert [need for _, _, need in found.segments] == [Need.NEEDED]


def test_below_the_log_start_and_of_a_partition_that_is_gone_nothing_is_needed() -> None:
    facts = {PARTITION: TIERED_TOPIC._replace(log_start_offset=10), OTHER: TIERED_TOPIC._replace(is_gone=True)}

    found = judged(uploaded(), facts=facts)

    assert (needs(found), found.need.may_go) == ([Need.BELOW_LOG_START, Need.PARTITION_GONE], True)
    reached = judged(uploaded(), facts=facts | {PARTITION: TIERED_TOPIC._replace(log_start_offset=9)})
    assert needs(reached)[0] is Need.NEEDED


@pytest.mark.parametrize("steps", range(2, 6))
def test_an_upload_is_in_progress_until_it_is_given_up(steps: int) -> None:
    assert needs(judged(uploaded(steps))) == [Need.IN_PROGRESS, Need.IN_PROGRESS]
    late = judged(uploaded(steps), after_ms=10 * 60_000 + 1)
    assert (needs(late), late.need.may_go) == ([Need.NEVER_FINISHED, Need.NEVER_FINISHED], True)


def test_a_partly_reported_upload_is_kept_for_those_who_were_told() -> None:
    found = judged(uploaded(6), after_ms=10 * 60_000 + 1)

    assert (needs(found), found.need) == ([Need.NEEDED, Need.NEVER_FINISHED], Need.NEEDED)


def test_a_deletion_that_its_leader_began_is_to_be_ended() -> None:
    wal = uploaded()
    (segment,) = wal.replayed().partition(PARTITION).segments.values()
    deleting = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
    wal.do(segment_deletions([segment], deleting, broker_id=3, leader_epoch=0, clock_ms=wal.clock_ms))

    assert needs(judged(wal)) == [Need.DELETED, Need.NEEDED]


@pytest.mark.parametrize("done", [2, 7])
def test_the_reason_of_what_a_cleaner_deletes_or_has_deleted_has_to_hold(done: int) -> None:
    wal = uploaded()
    steps = list(deletion_steps(wal.replayed(), COMBINED, broker_id=3, clock_ms=wal.clock_ms))
    assert len(steps) == 7

    wal.do(steps[:done])

    assert needs(judged(wal)) == [Need.NEEDED, Need.NEEDED]
    assert needs(judged(wal, {PARTITION: [(0, 0, 20)], OTHER: [(0, 40, 59)]})) == [Need.TIERED, Need.TIERED]


def test_a_segment_that_was_uploaded_again_is_needed_where_it_is_now() -> None:
    wal = uploaded(4)
    wal.do(uploading(wal, ITEMS[:1], 101))

    assert needs(judged(wal)) == [Need.ELSEWHERE, Need.IN_PROGRESS]


def test_what_a_leader_of_the_past_announced_is_not_needed_once_its_upload_is_given_up() -> None:
    wal = ModelWal()
    wal.do(uploading(wal, [item(9, PARTITION, 0, 3, leader_epoch=5)], 90))

    wal.do(uploading(wal, ITEMS, 100))

    assert needs(judged(wal)) == [Need.IN_PROGRESS, Need.NEEDED]
    assert needs(judged(wal, after_ms=10 * 60_000 + 1)) == [Need.OF_FORMER_LEADER, Need.NEEDED]


def test_what_no_event_is_left_of_is_unknown_and_kept() -> None:
    """Retention of the metadata topic takes each partition's events on its own."""
    wal = uploaded()
    for values in wal.topic:
        values[:] = [value for value in values if value[1] >= 102]

    found = judged(wal, after_ms=10_000 * HOUR)

    assert (needs(found), found.need.may_go) == ([Need.UNKNOWN, Need.UNKNOWN], False)


def test_what_else_is_in_an_object_without_an_event_of_its_own_is_unknown() -> None:
    """Then a partition whose events are missing too leaves no trace."""
    wal = uploaded()
    for values in wal.topic:
        values[:] = [value for value in values if value[1] < 102]

    found = judged(wal, {PARTITION: [(0, 0, 9)], OTHER: [(0, 50, 59)]})

    assert (needs(found), found.need) == ([Need.TIERED, Need.TIERED], Need.UNKNOWN)


@pytest.mark.parametrize(
    "facts",
    [PartitionFacts(is_foreign=True), PartitionFacts(0, is_foreign=True, is_tiered=False, local_retention_ms=0)],
)
def test_what_may_be_another_clusters_is_unknown(facts: PartitionFacts) -> None:
    found = judged(uploaded(), {PARTITION: [(0, 0, 9)]}, {PARTITION: TIERED_TOPIC, OTHER: facts}, 10_000 * HOUR)

    assert (needs(found), found.need) == ([Need.TIERED, Need.UNKNOWN], Need.UNKNOWN)


@settings(max_examples=examples(50))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 30), st.integers(0, 9)), max_size=25),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 30), st.integers(0, 9)), max_size=25),
)
def test_ranges_cover_what_offset_by_offset_is_covered(
    known: list[tuple[int, int, int, int]], asked: list[tuple[int, int, int, int]]
) -> None:
    def ranges(rows: list[tuple[int, int, int, int]]) -> EpochRanges:
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        return EpochRanges(columns[0], columns[1], columns[2], columns[2] + columns[3])

    covered = TieredRanges(ranges(known)).cover(ranges(asked))

    offsets = {(one, epoch, first + n) for one, epoch, first, length in known for n in range(length + 1)}
    assert covered.tolist() == [
        all((one, epoch, first + n) in offsets for n in range(length + 1)) for one, epoch, first, length in asked
    ]


def test_what_kip_405_has_is_what_its_finished_segments_say() -> None:
    for history in random_histories("wal", TEMPERS[1], 3_000):
        (replayed,) = by_columns([history])
        numbers = {partition: number for number, partition in enumerate(PARTITIONS)}
        found = TieredRanges.of(replayed, numbers)

        finished = [
            (partition, *one)
            for partition, known in replayed.segments()
            if known.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
            for one in known.metadata.epoch_ranges()
        ]
        offsets = {(p, epoch, n) for p, epoch, first, last in finished for n in range(first, last + 1)}
        asked = [(p, epoch, offset) for p in PARTITIONS for epoch in range(6) for offset in range(0, 60, 7)]
        columns = np.array([(numbers[p], epoch, offset, offset) for p, epoch, offset in asked], np.int64).T
        assert found.cover(EpochRanges(*columns)).tolist() == [one in offsets for one in asked]

"""A leader whose copies fail deletes what they left and tries again: a finding once that happened often enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, copied, partition_delete, started, updated
from tieredctl.model.clock import Clock
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import failing_copies, failing_finding, replayed
from tieredctl.ops.status.facts import facts_of_metadata
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.states import start_refusal, update_refusal

STARTED, COPIED, DELETING, DELETED = RemoteLogSegmentState
MINUTE_MS = 60_000
NOW_MS = FIRST_TIMESTAMP_MS + 10 * MINUTE_MS
ELSEWHERE = TopicIdPartition(PARTITION.topic_id, PARTITION.topic, 1)


def metadata(events: list[MetadataEvent]) -> ReplayedMetadata:
    return replayed(EventStream(EventsInMemory(events)))


def failure(number: int, start: int = 10, partition: TopicIdPartition = PARTITION) -> list[MetadataEvent]:
    """The number is also the minute."""
    began_ms = FIRST_TIMESTAMP_MS + number * MINUTE_MS
    copy = started(number, start, start + 9, partition=partition, author=3, event_timestamp_ms=began_ms)
    return [copy, updated(number, DELETING, partition=partition), updated(number, DELETED, partition=partition)]


THREE = [*failure(1), *failure(2), *failure(3)]


def test_a_store_that_refuses_copies() -> None:
    left = metadata([*copied(9, 0, 9), *THREE])

    (finding,) = [failing_finding(one, NOW_MS) for one in failing_copies(left, NOW_MS)]
    facts = facts_of_metadata(left, Clock(NOW_MS, 1), None, [], is_broken=False, may_be_more=False, replicas=[])

    assert (finding.code, finding.subject) == ("copy-failing", "t-0")
    assert finding.message == (
        "the copy at offset 10 has failed 3 times in 9min, the last 7min ago by broker 3, and none has finished since"
    )
    assert finding.evidence["tries"] == 3
    assert facts.stuck is not None
    assert (facts.stuck.copies, facts.stuck.deletions, facts.stuck.failing) == (0, 0, 1)


NOT_FAILING: dict[str, list[MetadataEvent]] = {
    "two may pass": [*failure(1), *failure(2)],
    "a later copy succeeded": [*THREE, *copied(4, 10, 19)],
    "and retention took it": [*THREE, *copied(4, 10, 19), updated(4, DELETING)],
    "it failed before, elsewhere": [*failure(1), *failure(2), *copied(4, 10, 19), *failure(5, 20)],
    "in several partitions": [*failure(1), *failure(2), *failure(3, partition=ELSEWHERE)],
    "at several offsets": [*failure(1), *failure(2), *failure(3, 20)],
    "the third has not failed yet": [*failure(1), *failure(2), started(3, 10, 19)],
    "copied again": [event for number in (1, 2, 3) for event in copied(number, 0, 9)[:2]],
    "removed": [*THREE, partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_FINISHED)],
}


def test_what_is_no_failing_copy() -> None:
    for name, events in NOT_FAILING.items():
        assert failing_copies(metadata(events), NOW_MS) == [], name


def test_who_has_not_tried_for_an_hour_has_stopped_and_one_that_tries_now_has_not() -> None:
    last_ms, hour_ms = FIRST_TIMESTAMP_MS + 3 * MINUTE_MS, 60 * MINUTE_MS

    assert failing_copies(metadata(THREE), last_ms + hour_ms) != []
    assert failing_copies(metadata(THREE), last_ms + hour_ms + 1) == []
    assert [one.tries for one in failing_copies(metadata([*THREE, started(4, 10, 19)]), NOW_MS)] == [3]


def event(number: int, start: int, state: RemoteLogSegmentState | None, time_ms: int) -> MetadataEvent:
    """A copy begins where there is no state. A partition is removed in place of one segment's events."""
    partition = (PARTITION, ELSEWHERE)[number % 2]
    if number == SEGMENTS:
        return partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_FINISHED, partition=ELSEWHERE)
    if state is None:
        return started(number, start, start + 9, partition=partition, author=number, event_timestamp_ms=time_ms)
    return updated(number, state, partition=partition)


SEGMENTS = 12
STATES = st.sampled_from([None, None, None, DELETING, DELETING, DELETED, COPIED])
EVENTS = st.builds(
    event,
    st.integers(0, 10 * SEGMENTS).map(lambda number: number % SEGMENTS if number < 10 * SEGMENTS else SEGMENTS),
    st.sampled_from([0, 10]),
    STATES,
    st.integers(1, 1 << 41),
)
HISTORIES = st.lists(EVENTS, min_size=10, max_size=80)


def by_events(events: list[MetadataEvent], at_least: int) -> set[tuple[object, ...]]:
    """The same, as one who takes event after event would tell it."""
    states: dict[tuple[TopicIdPartition, str], RemoteLogSegmentState] = {}
    copies = defaultdict[TopicIdPartition, dict[str, tuple[int, RemoteLogSegmentMetadata]]](dict)
    ended = defaultdict[TopicIdPartition, dict[str, set[RemoteLogSegmentState]]](lambda: defaultdict(set))
    finishes, removed = dict[TopicIdPartition, int](), set[TopicIdPartition]()
    for offset, event in enumerate(events):
        if isinstance(event, RemotePartitionDeleteMetadata):
            if event.state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED:
                removed.add(event.topic_id_partition)
            continue
        if not isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate):
            continue
        partition = event.topic_id_partition
        before = states.get((partition, event.segment_id))
        before = None if before is DELETED else before
        refused: Callable[..., object] = (
            start_refusal if isinstance(event, RemoteLogSegmentMetadata) else update_refusal
        )
        if partition in removed or refused(before, event.state) is not None:
            continue
        states[partition, event.segment_id] = event.state
        ended[partition][event.segment_id].add(event.state)
        if isinstance(event, RemoteLogSegmentMetadata):
            copies[partition][event.segment_id] = (offset, event)
        elif event.state is COPIED:
            finishes[partition] = offset
    found = set[tuple[object, ...]]()
    for partition in copies.keys() - removed:
        tried = [
            copy
            for segment_id, copy in copies[partition].items()
            if COPIED not in (said := ended[partition][segment_id]) and said & {DELETING, DELETED}
        ]
        since = sorted((one for one in tried if one[0] > finishes.get(partition, -1)), key=lambda one: one[0])
        same = [copy for _, copy in since if copy.start_offset == since[-1][1].start_offset]
        if since and len(same) >= at_least:
            last = same[-1]
            times = same[0].event_timestamp_ms, last.event_timestamp_ms
            found.add((partition, last.segment_id, last.start_offset, last.end_offset, last.author, len(same), *times))
    return found


@settings(max_examples=examples(200))
@given(HISTORIES, st.integers(1, 3))
def test_by_columns_as_event_by_event(events: list[MetadataEvent], at_least: int) -> None:
    with (
        patch("tieredctl.rlmm.event_columns._PART_EVENTS", 10),
        patch("tieredctl.rlmm.event_columns._BUCKET_EVENTS", 1),
    ):
        found = metadata(events).failing_copies(at_least=at_least)

    told = {
        (
            *(one.partition, one.segment_id, one.start_offset, one.end_offset),
            *(one.author, one.tries, one.since_ms, one.last_ms),
        )
        for one in found
    }
    assert len(told) == len(found)
    assert told == by_events(events, at_least)

"""Whoever follows the metadata forgets deleted segments, and sees the same as if it kept all."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import EXAMPLES
from tests.event_histories import METADATA_PARTITIONS, TEMPERS, Temper, random_histories
from tests.metadata_logs import copied, partition_delete, segment_id, started, updated
from tests.rlmm.test_followed_by_columns import GrowingHistory, Parts, in_parts, varied
from tests.shares import divided
from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.ops.monitoring.followed_events import FollowedEvents, FollowedFigures

EVENTS = 6
READINGS = 4
OFFSETS_OF_ONE = 10
SEGMENTS = 20
"""Of a partition in the course of time; a few at a time."""
ALIVE = 3
_STATE = RemoteLogSegmentState


def seen(parts: Parts, *, forgets: bool) -> Iterator[FollowedFigures]:
    source = GrowingHistory(parts, METADATA_PARTITIONS)
    followed = FollowedEvents(source.opened, least_events=0 if forgets else sys.maxsize)
    return (followed.read() for _ in parts)


def told(figures: FollowedFigures) -> dict[str, Any]:
    """All that is asked of figures."""
    metadata = figures.metadata
    segments = list(metadata.segments())
    finished = {
        known.metadata.segment_id for _, known in segments if known.metadata.state is _STATE.COPY_SEGMENT_FINISHED
    }
    return {
        "partitions": figures.partitions,
        "findings": figures.findings,
        "named": sorted(metadata.partitions),
        "segments": segments,
        "odd": metadata.findings,
        "rows": sorted(metadata.rows.events.tolist()),
        "removals": metadata.partition_deletes,
        "displaced": {
            partition: displaced
            for partition, cache in metadata.caches.items()
            if (
                displaced := {one.metadata.segment_id for one in cache.list_remote_log_segments()}
                & finished - cache.referenced()
            )
        },
    }


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_what_is_seen_is_the_same(temper: Temper) -> None:
    for records in divided([*random_histories("forgotten", temper, EVENTS * EXAMPLES)]):
        parts = in_parts(varied(records), READINGS)

        for forgetful, full in zip(seen(parts, forgets=True), seen(parts, forgets=False), strict=True):
            assert told(forgetful) == told(full)


def segment(number: int) -> RemoteLogSegmentMetadata:
    first = number * OFFSETS_OF_ONE
    return started(number, first, first + OFFSETS_OF_ONE - 1)


def retention(count: int = SEGMENTS) -> Iterator[list[MetadataEvent]]:
    """Segments are copied, and deleted when there are too many."""
    for number in range(count):
        yield [segment(number), updated(number, _STATE.COPY_SEGMENT_FINISHED)]
        if number >= ALIVE:
            yield deleted(number - ALIVE)


def deleted(number: int) -> list[MetadataEvent]:
    return [updated(number, _STATE.DELETE_SEGMENT_STARTED), updated(number, _STATE.DELETE_SEGMENT_FINISHED)]


def logged(*parts: list[MetadataEvent], metadata_partition: int = 0) -> Parts:
    numbered = iter(range(100_000))
    return [[EventRecord(metadata_partition, next(numbered), 1, event) for event in part] for part in parts]


def test_what_is_kept_does_not_grow_with_what_was_deleted() -> None:
    emptied = [[*again(number), *deleted(number)] for number in range(SEGMENTS, 2 * SEGMENTS)]
    parts = logged(
        *retention(), [event for number in range(ALIVE) for event in deleted(SEGMENTS - 1 - number)], *emptied
    )
    source = GrowingHistory(parts, METADATA_PARTITIONS)
    followed = FollowedEvents(source.opened, least_events=0)

    kept = [followed.read().metadata.events.count for _ in parts]

    assert max(kept) <= 2 * (2 * ALIVE + len(deleted(0)) + 4)
    assert sum(map(len, parts)) > 5 * max(kept)
    assert followed.readings == 1


def peak_of_a_first_reading(segments: int) -> int:
    """In bytes, beside what the source itself has."""
    history = [event for part in retention(segments) for event in part]
    source = GrowingHistory(logged(history), METADATA_PARTITIONS)
    followed = FollowedEvents(source.opened, least_events=100)
    tracemalloc.start()
    try:
        followed.read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_first_reading_takes_no_more_memory_for_what_was_deleted_long_ago() -> None:
    assert peak_of_a_first_reading(20 * SEGMENTS) < 1.5 * peak_of_a_first_reading(5 * SEGMENTS)


def again(number: int) -> list[MetadataEvent]:
    return [segment(number), updated(number, _STATE.COPY_SEGMENT_FINISHED)]


_LATER: dict[str, list[MetadataEvent]] = {
    "again": again(3),
    "below and covered": [*copied(SEGMENTS, 5, 9), *copied(SEGMENTS + 2, 0, 12)],
    "an epoch below": [replace(segment(SEGMENTS), segment_leader_epochs=((0, 5), (1, OFFSETS_OF_ONE * SEGMENTS)))],
    "deleted again": [updated(3, _STATE.DELETE_SEGMENT_FINISHED)],
    "partition removed": [partition_delete(state) for state in RemotePartitionDeleteState],
}


@pytest.mark.parametrize(("later", "place"), [*((name, 0) for name in _LATER), ("partition removed", 1), ("again", 1)])
def test_what_comes_later_finds_what_it_would_have_found(later: str, place: int) -> None:
    numbered = enumerate([*_LATER[later], *again(SEGMENTS + 1)], 5000)
    emptied = [event for number in range(SEGMENTS - ALIVE, SEGMENTS) for event in deleted(number)]
    before = [record for part in logged(*retention(), emptied) for record in part]
    parts = [*in_parts(before, 2), [EventRecord(place, offset, 1, event) for offset, event in numbered]]

    *_, forgetful = seen(parts, forgets=True)
    *_, full = seen(parts, forgets=False)

    assert told(forgetful) == told(full)


def test_a_segment_that_a_deleted_one_displaced_stays_displaced() -> None:
    number, (first, last) = SEGMENTS + 1, (SEGMENTS * OFFSETS_OF_ONE, (SEGMENTS + 1) * OFFSETS_OF_ONE)
    covering: list[MetadataEvent] = [started(number, first, last), updated(number, _STATE.COPY_SEGMENT_FINISHED)]
    parts = logged(*retention(), again(SEGMENTS), covering, deleted(number), *again_each(SEGMENTS + 2, 2 * SEGMENTS))

    *_, forgetful = seen(parts, forgets=True)

    assert [*told(forgetful)["displaced"].values()] == [{segment_id(SEGMENTS)}]


def again_each(first: int, end: int) -> Iterator[list[MetadataEvent]]:
    return (again(number) for number in range(first, end))

"""What metadata never named is an orphan only where finished copies prove that its records are elsewhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.event_histories import TEMPERS, HistoryInMemory, Temper, partition_of, random_histories
from tests.faults.cluster import LAYOUT
from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    FIRST_TIMESTAMP_MS,
    PARTITION,
    copied,
    partition_delete,
    segment_id,
    started,
    updated,
)
from tests.orphans.test_older_than_metadata import IDLE_TOPIC_ID, scan
from tests.replay_by_events import finished_copies
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RemotePartitionDeleteState,
)
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.removal import PlannedObject
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphans.segment_states import segment_states
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.ports.object_store import StoredObject
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.segment_events import SegmentEvents

HOUR_MS = 3_600_000
METADATA_PARTITIONS = 4
BEGINS_MS = FIRST_TIMESTAMP_MS
STORED_MS = BEGINS_MS + 100 * HOUR_MS
LATER_MS = BEGINS_MS + 200 * HOUR_MS
OTHER = replace(PARTITION, partition=1)
FIRST = [(BEGINS_MS, event) for event in copied(1, 0, 99, event_timestamp_ms=BEGINS_MS)]
"""What was copied before the object was stored; it ends where the object's segment begins, unless a test says else."""
ELSEWHERE = [(LATER_MS, event) for event in copied(2, 0, 9, partition=OTHER, event_timestamp_ms=LATER_MS)]
"""So that the object is not newer than all metadata."""
Timed = Sequence[tuple[int, MetadataEvent]]


def key(start: int, partition: TopicIdPartition = PARTITION) -> str:
    """Of a segment that no event names."""
    identity = ExplainedKey(partition.topic, partition.topic_id, partition.partition, start, segment_id(99), Part.LOG)
    return LAYOUT.promised_objects(identity)[Part.LOG]


def later(*events: MetadataEvent, at_ms: int = LATER_MS) -> Timed:
    """Events of a copy that began at one time."""
    return [(at_ms, replace(event, event_timestamp_ms=at_ms)) for event in events]


def records(*parts: Timed) -> list[EventRecord]:
    """Events in their order, each where Kafka puts it."""
    ends, found = [0] * METADATA_PARTITIONS, []
    for time_ms, event in (one for part in parts for one in part):
        owner = partition_of(event)
        number = metadata_partition(owner.topic_id, owner.partition, METADATA_PARTITIONS)
        found.append(EventRecord(number, ends[number], time_ms, event))
        ends[number] += 1
    return found


def verdict(*parts: Timed, start: int = 100, live: frozenset[str] | None = None) -> tuple[str, str | None, str | None]:
    """Status, cause and reason of an object of `start`, stored between FIRST and what is `later`."""
    (document,) = scan(records(*parts), key(start), modified_ms=STORED_MS, live=live).documents()
    return document["status"], document["cause"], (document["evidence"] or {}).get("reason")


ORPHAN, UNKNOWN = ("orphan", "no-metadata", None), ("unknown", None, "not-covered")


DELETED_SINCE = [*copied(3, 100, 199), updated(3, DELETING), updated(3, DELETED)]
RECOVERED = later(*(replace(event, author=NO_BROKER) for event in copied(3, 90, 199)))
OVERLAPPING = later(*copied(3, 90, 120), at_ms=BEGINS_MS)
"""What holds its first offset may end before it does: two leaders' segments have other bounds."""
AGAIN = copied(3, 100, 199)
CASES: dict[str, tuple[Sequence[Timed], object]] = {
    "nothing else has its offsets": ([], UNKNOWN),
    "it was copied again": ([later(*AGAIN)], ORPHAN),
    **{
        f"by a copy from {start} to {end}": ([later(*copied(3, start, end))], ORPHAN)
        for start, end in ((50, 100), (50, 250), (100, 100))
    },
    **{
        f"a copy of other offsets, {start} to {end}": ([later(*copied(3, start, end))], UNKNOWN)
        for start, end in ((0, 99), (101, 199))
    },
    "by a copy that is being deleted": ([later(*DELETED_SINCE[:3])], ORPHAN),
    "by a copy that was deleted": ([later(*DELETED_SINCE)], ORPHAN),
    "a copy that hangs": ([later(started(3, 100, 199))], UNKNOWN),
    "a copy that failed": ([later(started(3, 100, 199), updated(3, DELETING))], UNKNOWN),
    "a copy that was cleaned up": (
        [later(started(3, 100, 199), updated(3, DELETING), updated(3, DELETED))],
        UNKNOWN,
    ),
    "a copy that began again": ([later(*DELETED_SINCE, started(3, 100, 199))], UNKNOWN),
    "an update of a copy whose beginning was lost": ([later(updated(3, COPIED))], UNKNOWN),
    "a copy of another partition": ([later(*copied(3, 100, 199, partition=OTHER))], UNKNOWN),
    "a copy of another topic": (
        [later(*copied(3, 100, 199, partition=replace(PARTITION, topic_id=IDLE_TOPIC_ID)))],
        UNKNOWN,
    ),
    "a recovery that registered a copy again": ([RECOVERED], UNKNOWN),
    "and a leader's copy after it": ([RECOVERED, later(*copied(4, 200, 299))], ORPHAN),
    "a hole after it, where the rest of it may have been": ([OVERLAPPING, later(*copied(4, 200, 299))], UNKNOWN),
    "no hole after it": ([OVERLAPPING, later(*copied(4, 121, 299))], ORPHAN),
    "a copy from before it": ([OVERLAPPING], UNKNOWN),
    "a copy as far after it as clocks may differ": ([later(*AGAIN, at_ms=STORED_MS + MOST_SKEW_MS)], ORPHAN),
    "a copy before that": ([later(*AGAIN, at_ms=STORED_MS + MOST_SKEW_MS - 1)], UNKNOWN),
}


def test_what_proves_that_its_records_are_elsewhere() -> None:
    for name, (parts, expected) in CASES.items():
        assert verdict(FIRST, *parts, ELSEWHERE) == expected, name
    # A hole before it says nothing of it.
    assert verdict(FIRST, later(*copied(3, 150, 199)), ELSEWHERE, start=150) == ORPHAN


def test_a_topic_or_partition_that_is_gone_needs_no_records() -> None:
    alive = later(*copied(4, 0, 9, partition=replace(PARTITION, topic_id=IDLE_TOPIC_ID)))

    assert verdict(FIRST, ELSEWHERE, alive, live=frozenset({IDLE_TOPIC_ID})) == ("orphan", "topic-gone", None)
    for state in RemotePartitionDeleteState:
        assert verdict(FIRST, later(partition_delete(state)), ELSEWHERE) == ("orphan", "partition-gone", None), state


def test_a_finding_counts_them_and_leads_to_the_recovery_of_metadata() -> None:
    found = scan(records(FIRST, later(*copied(3, 100, 199)), ELSEWHERE), key(100), key(300), modified_ms=STORED_MS)

    found.run()

    orphaned, lost = found.findings
    assert (orphaned.code, orphaned.evidence) == (
        "object-unreferenced",
        {"cause": "no-metadata", "objects": 1, "bytes": 5},
    )
    assert (lost.code, lost.evidence) == ("object-not-covered", {"objects": 1, "bytes": 5})
    assert lost.remedy.startswith("tieredctl recover metadata ")
    assert exit_code_of(found.findings) is ExitCode.FINDINGS


def test_an_object_that_was_planned_stays_once_nothing_proves_that_its_records_are_elsewhere() -> None:
    for cause, code, hint in [
        ("no-metadata", "world-changed", "recover metadata"),
        ("topic-gone", "topic-unclear", ""),
    ]:
        followed = FollowedMetadata(partial(HistoryInMemory, records(FIRST, ELSEWHERE), METADATA_PARTITIONS))
        owners = FreshMetadata(followed, LAYOUT, 0, NO_TOPIC_SOURCES, lambda: LATER_MS + HOUR_MS)
        owners.refresh()
        planned = PlannedObject(key(100), 5, STORED_MS, "1", "orphan", cause, None)
        with pytest.raises(TieredctlError) as refused:
            owners.demand_removable([(planned, StoredObject(planned.key, 5, STORED_MS, "1"))], Limits(0, 100.0))
        assert refused.value.code == code, (cause, code, hint)
        assert hint in (refused.value.hint or ""), (cause, code, hint)


def held_one_by_one(history: Sequence[EventRecord], owner: TopicIdPartition, start: int, latest_ms: int) -> bool:
    """By taking one event after the other, and counting offsets on fingers."""
    done = [one for one in finished_copies(history) if one.topic_id_partition == owner]
    offsets = {offset for one in done for offset in range(one.start_offset, one.end_offset + 1)}
    by_brokers = [one.event_timestamp_ms for one in done if one.author != NO_BROKER]
    if start not in offsets or latest_ms > max(by_brokers, default=-1):
        return False
    return all(offset in offsets for offset in range(start, max(offsets)))


def _by_an_author_less(record: EventRecord) -> EventRecord:
    """So that no broker wrote some of them."""
    return replace(record, event=replace(record.event, author=record.event.author - 1))


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_columns_prove_what_events_do_one_by_one(temper: Temper) -> None:
    source, held = random.Random(str(temper)), 0
    for drawn in random_histories("copied", temper, 2_000):
        history = [_by_an_author_less(record) for record in drawn]
        events = SegmentEvents()
        read_events(EventStream(HistoryInMemory(history)), events)
        copied_offsets = segment_states(events).copied
        for owner, number in events.partitions.items():
            for start in source.sample(range(62), 10):
                latest_ms = FIRST_TIMESTAMP_MS + source.randrange(10**6)
                found = copied_offsets.hold(*(np.array([one]) for one in (number, start, latest_ms)))
                assert found.tolist() == [held_one_by_one(history, owner, start, latest_ms)]
                held += found.sum()
    # The histories are worth it.
    assert held

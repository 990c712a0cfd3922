"""Whose is an object: one rule a test, on a store and a metadata topic that are otherwise sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.buckets_in_memory import BucketInMemory
from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    FIRST_TIMESTAMP_MS,
    PARTITION,
    TOPIC_ID,
    copied,
    partition_delete,
    segment_id,
    started,
    updated,
)
from tieredctl.errors import ExitCode
from tieredctl.model.events import MetadataEvent, RemotePartitionDeleteState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.removal import OriginalTime
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.guards.original_times import note_original_times
from tieredctl.ops.guards.own_objects import TIMES_OF_RESTORED
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.storage.memory import MemoryStore

HOUR_MS = 3_600_000
NOW_MS = FIRST_TIMESTAMP_MS + 100 * HOUR_MS
OLD_MS = FIRST_TIMESTAMP_MS - 100 * HOUR_MS
BEGINS_MS = OLD_MS - HOUR_MS
"""When the first event of metadata was written that old objects come after."""
OF_OLD = partial(copied, event_timestamp_ms=BEGINS_MS)
GOING_ON = [*OF_OLD(1, 0, 9), *copied(8, 10, 19)]
"""A partition that was copied before and after old objects came."""
SIGNING_KEY = bytes(32)
OTHER_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"


def key(number: int, start: int = 0, part: Part = Part.LOG, partition: TopicIdPartition = PARTITION) -> str:
    identity = ExplainedKey(partition.topic, partition.topic_id, partition.partition, start, segment_id(number), part)
    return LAYOUT.promised_objects(identity)[part]


@dataclass
class Truncated(EventsInMemory):
    """Metadata that has lost its beginning."""

    def findings(self) -> list[Finding]:
        return [Finding(FindingCode.METADATA_TRUNCATED, "__remote_log_metadata-0", "it starts at offset 7", {})]


def scan(
    events: Sequence[MetadataEvent],
    *keys: str,
    modified_ms: int = OLD_MS,
    live: frozenset[str] | None = None,
    source: type[EventsInMemory] = EventsInMemory,
) -> Scan:
    store = MemoryStore()
    for one in keys:
        store.put(one, b"bytes", modified_ms)
    options = ScanOptions(now_ms=NOW_MS, min_age_ms=24 * HOUR_MS, topic_sources=TopicSources(live))
    return Scan(SpooledListing(store.list()), LAYOUT, store.url, lambda: EventStream(source(events)), options)


def verdict(events: Sequence[MetadataEvent], one: str, **how: Any) -> tuple[str, str | None]:
    """Beside an object of the layout: one without any would be refused."""
    documents = {document["key"]: document for document in scan(events, one, key(99), **how).documents()}
    return documents[one]["status"], documents[one]["cause"]


OTHER, ELSEWHERE = replace(PARTITION, topic_id=OTHER_TOPIC_ID), replace(PARTITION, partition=1)
HANGING = [started(2, 10, 19)]
LEFT_BEHIND = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
LIVES = copied(9, 0, 9, partition=TopicIdPartition(OTHER_TOPIC_ID, "u", 0))
YOUNG, NEWEST = {"modified_ms": NOW_MS - HOUR_MS}, {"modified_ms": FIRST_TIMESTAMP_MS + HOUR_MS}
OWNED, UNKNOWN, IN_PROGRESS = ("owned", None), ("unknown", None), ("in-progress", None)
GIVEN_UP = ("orphan", "copy-never-finished")
Case = tuple[Sequence[MetadataEvent], str, dict[str, Any], tuple[str, str | None]]
VERDICTS: dict[str, Case] = {
    "a finished copy owns its objects": (copied(1, 0, 9), key(1), {}, OWNED),
    "a copy that another displaced is Kafka's": ([*copied(1, 0, 9), *copied(2, 0, 9)], key(1), {}, OWNED),
    "no layout's key": (copied(1, 0, 9), "notes.txt", {}, UNKNOWN),
    "a key with more after it": (copied(1, 0, 9), key(1) + ".bak", {}, UNKNOWN),
    "a key with more before it": (copied(1, 0, 9), "t-0/" + key(1), {}, UNKNOWN),
    "a topic that was never known": (OF_OLD(1, 0, 9), key(2, partition=OTHER), {}, ("foreign", None)),
    "a topic that the cluster alone knows": (
        *(GOING_ON, key(2, partition=OTHER)),
        *({"live": frozenset({TOPIC_ID, OTHER_TOPIC_ID})}, UNKNOWN),
    ),
    "no events, and its records are elsewhere": (GOING_ON, key(2), {}, ("orphan", "no-metadata")),
    "newer than the last event: it may be announced": (copied(1, 0, 9), key(2), NEWEST, IN_PROGRESS),
    "young and not owned": (LEFT_BEHIND, key(1), YOUNG, IN_PROGRESS),
    "young and owned": (copied(1, 0, 9), key(1), YOUNG, OWNED),
    "a deletion that never finished": (
        *([*copied(1, 0, 9), updated(1, DELETING)], key(1)),
        *({}, ("orphan", "delete-never-finished")),
    ),
    "a deletion that left objects": (LEFT_BEHIND, key(1), {}, ("orphan", "deleted-but-present")),
    "a copy that hangs may end": ([*copied(1, 0, 9), *HANGING], key(2, 10), {}, IN_PROGRESS),
    "another copy of its offsets finished": ([*HANGING, *copied(3, 10, 19)], key(2, 10), {}, GIVEN_UP),
    "a larger copy of its offsets finished": ([*HANGING, *copied(3, 5, 30)], key(2, 10), {}, GIVEN_UP),
    # It may have finished, and the event that says so be lost.
    "a copy holds its last offset": ([*HANGING, *copied(3, 19, 30)], key(2, 10), {}, IN_PROGRESS),
    "a copy holds its first offset": ([*HANGING, *copied(3, 0, 10)], key(2, 10), {}, IN_PROGRESS),
    "a copy holds its middle": ([*HANGING, *copied(3, 12, 13)], key(2, 10), {}, IN_PROGRESS),
    **{
        f"all of it after {start} to {end}": (
            *([*HANGING, *copied(3, start, end), *copied(4, 10, 19)], key(2, 10)),
            *({}, GIVEN_UP),
        )
        for start, end in ((19, 30), (0, 10), (12, 13))
    },
    "the later copy did not finish either": ([*HANGING, started(3, 10, 19)], key(2, 10), {}, IN_PROGRESS),
    "none of its offsets began later": ([*copied(3, 10, 19), *HANGING], key(2, 10), {}, IN_PROGRESS),
    "a later copy after it": ([*copied(1, 10, 19), *HANGING, *copied(3, 20, 29)], key(2, 10), {}, IN_PROGRESS),
    "a later copy before it": ([*copied(1, 10, 19), *HANGING, *copied(3, 0, 9)], key(2, 10), {}, IN_PROGRESS),
    "a later copy of another partition": (
        *([*HANGING, *copied(3, 10, 19, partition=ELSEWHERE)], key(2, 10)),
        *({}, IN_PROGRESS),
    ),
    "it began again itself": ([*HANGING, *HANGING], key(2, 10), {}, IN_PROGRESS),
    "a topic that is gone": (
        *([*copied(1, 0, 9), *LIVES], key(1)),
        *({"live": frozenset({OTHER_TOPIC_ID})}, ("orphan", "topic-gone")),
    ),
    "a copy of a topic that is gone": (
        *([started(1, 0, 9), *LIVES], key(1)),
        *({"live": frozenset({OTHER_TOPIC_ID})}, GIVEN_UP),
    ),
    **{
        f"a partition in {state.name}": (
            *([*copied(1, 0, 9), partition_delete(state)], key(1)),
            *({}, ("orphan", "partition-gone")),
        )
        for state in RemotePartitionDeleteState
    },
    "an end of a deletion that did not begin": ([*copied(1, 0, 9), updated(1, DELETED)], key(1), {}, OWNED),
    "a deletion before the copy": ([updated(1, DELETING), *copied(1, 0, 9)], key(1), {}, OWNED),
    "no event of it": ([*copied(1, 0, 9), updated(8, COPIED)], key(7), {}, UNKNOWN),
    "no event began it": ([*copied(1, 0, 9), updated(8, COPIED)], key(8), {}, UNKNOWN),
    "a key with another offset": (copied(1, 0, 9), key(1, start=5), {}, UNKNOWN),
    "a key in another partition": (
        *([*copied(1, 0, 9), *copied(2, 0, 9, partition=ELSEWHERE)], key(1, partition=ELSEWHERE)),
        *({}, UNKNOWN),
    ),
    "a segment that two partitions claim": (
        *([*copied(1, 0, 9), *copied(1, 0, 9, partition=ELSEWHERE), updated(1, DELETING)], key(1)),
        *({}, UNKNOWN),
    ),
}


def test_whose_an_object_is() -> None:
    for name, (events, one, how, expected) in VERDICTS.items():
        assert verdict(events, one, **how) == expected, name


def test_metadata_that_is_not_whole_makes_no_orphan_of_what_it_does_not_name() -> None:
    found = scan(copied(1, 0, 9), key(2), source=Truncated)

    (document,) = found.documents()

    assert document["status"] == "unknown"
    assert found.summary()["complete"] is False
    assert exit_code_of(found.findings) is ExitCode.INCOMPLETE


def test_each_cause_is_one_finding_with_its_count() -> None:
    events = [*OF_OLD(1, 0, 9), *copied(2, 10, 19), updated(2, DELETING)]
    keys = [key(2, 10), key(2, 10, Part.OFFSET_INDEX), key(3)]

    found = scan(events, key(1), *keys)
    statuses = [document["status"] for document in found.documents()]

    assert sorted(statuses) == ["orphan", "orphan", "orphan", "owned"]
    assert [(finding.evidence["cause"], finding.evidence["objects"]) for finding in found.findings] == [
        ("delete-never-finished", 2),
        ("no-metadata", 1),
    ]
    assert exit_code_of(found.findings) is ExitCode.FINDINGS


def test_the_evidence_names_the_last_event_or_up_to_where_there_is_none() -> None:
    events = [*GOING_ON, updated(1, DELETING)]

    deleted, absent, lost = scan(events, key(1), key(2), key(3, 20)).documents()

    assert deleted["evidence"] == {"state": "DELETE_SEGMENT_STARTED", "metadataPartition": 0, "metadataOffset": 4}
    assert absent["evidence"] == {"metadataPartition": 0, "noEventBefore": 5}
    assert lost["evidence"] == {"metadataPartition": 0, "noEventBefore": 5, "reason": "not-covered"}


def test_the_store_is_listed_before_the_metadata_is_opened() -> None:
    order: list[str] = []

    class Told(MemoryStore):
        def list(self, prefix: str = "", start_after: str = ""):  # type: ignore[no-untyped-def]
            yield from super().list(prefix, start_after)
            order.append("listed")

    def read() -> EventStream:
        order.append("metadata")
        return EventStream(EventsInMemory(copied(1, 0, 9)))

    list(Scan(SpooledListing(Told().list()), LAYOUT, "memory:", read, ScanOptions(NOW_MS, 0)).documents())

    assert order == ["listed", "metadata"]


def put_back(modified_ms: int, original_ms: int, *events: MetadataEvent) -> str:
    """The status of an object that was written at one time, and before it was removed at another."""
    store = BucketInMemory(NOW_MS)
    stored = store.put(key(1), b"bytes", modified_ms)
    note_original_times(store, SIGNING_KEY, TIMES_OF_RESTORED, [OriginalTime(*stored[:4], original_ms)])
    options = ScanOptions(now_ms=NOW_MS, min_age_ms=24 * HOUR_MS, key=SIGNING_KEY)
    read = partial(EventStream, EventsInMemory([*copied(2, 10, 19), *events]))
    (document,) = Scan(SpooledListing(store.list()), LAYOUT, store.url, read, options, store).documents()
    return str(document["status"])


def test_what_was_put_back_is_as_old_as_it_was_before_and_may_have_events_that_were_not_read() -> None:
    deleting = [*copied(1, 0, 9), updated(1, DELETING)]
    young_ms = NOW_MS - HOUR_MS

    assert put_back(young_ms, OLD_MS, *deleting) == "orphan"
    assert put_back(young_ms, young_ms, *deleting) == "in-progress"
    assert put_back(young_ms, OLD_MS) == "in-progress"

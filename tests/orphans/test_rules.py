"""Whose is an object: one rule a test, on a store and a metadata topic that are otherwise sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pytest

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


def verdict(events: Sequence[MetadataEvent], one: str, **how: object) -> tuple[str, str | None]:
    (document,) = scan(events, one, **how).documents()  # type: ignore[arg-type]
    return document["status"], document["cause"]


def test_a_finished_copy_owns_its_objects() -> None:
    assert verdict(copied(1, 0, 9), key(1)) == ("owned", None)


def test_a_copy_that_another_displaced_is_kafkas() -> None:
    assert verdict([*copied(1, 0, 9), *copied(2, 0, 9)], key(1)) == ("owned", None)


@pytest.mark.parametrize("name", ["notes.txt", key(1) + ".bak", "t-0/" + key(1)])
def test_a_key_that_no_layout_explains_is_unknown(name: str) -> None:
    assert verdict(copied(1, 0, 9), name) == ("unknown", None)


def test_a_topic_that_was_never_known_is_foreign() -> None:
    other = replace(PARTITION, topic_id=OTHER_TOPIC_ID)
    assert verdict(OF_OLD(1, 0, 9), key(2, partition=other)) == ("foreign", None)


def test_a_topic_that_the_cluster_alone_knows_is_not_foreign() -> None:
    other = replace(PARTITION, topic_id=OTHER_TOPIC_ID)
    live = frozenset({TOPIC_ID, OTHER_TOPIC_ID})
    assert verdict(GOING_ON, key(2, partition=other), live=live) == ("unknown", None)


def test_a_segment_without_events_is_an_orphan_where_copies_prove_that_its_records_are_elsewhere() -> None:
    assert verdict(GOING_ON, key(2)) == ("orphan", "no-metadata")


def test_an_object_newer_than_the_last_event_may_still_be_announced() -> None:
    modified = FIRST_TIMESTAMP_MS + HOUR_MS
    assert verdict(copied(1, 0, 9), key(2), modified_ms=modified) == ("in-progress", None)


def test_a_young_object_that_is_not_owned_is_in_progress() -> None:
    events = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
    assert verdict(events, key(1), modified_ms=NOW_MS - HOUR_MS) == ("in-progress", None)


def test_a_young_object_of_a_finished_copy_is_owned() -> None:
    assert verdict(copied(1, 0, 9), key(1), modified_ms=NOW_MS - HOUR_MS) == ("owned", None)


def test_a_deletion_that_never_finished() -> None:
    assert verdict([*copied(1, 0, 9), updated(1, DELETING)], key(1)) == ("orphan", "delete-never-finished")


def test_a_deletion_that_finished_and_left_objects() -> None:
    events = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
    assert verdict(events, key(1)) == ("orphan", "deleted-but-present")


def test_a_copy_that_hangs_may_still_end() -> None:
    assert verdict([*copied(1, 0, 9), started(2, 10, 19)], key(2, start=10)) == ("in-progress", None)


@pytest.mark.parametrize(("start", "end"), [(10, 19), (5, 30)])
def test_a_copy_is_given_up_once_another_of_its_offsets_began_later_and_finished(start: int, end: int) -> None:
    events = [started(2, 10, 19), *copied(3, start, end)]
    assert verdict(events, key(2, start=10)) == ("orphan", "copy-never-finished")


@pytest.mark.parametrize(("start", "end"), [(19, 30), (0, 10), (12, 13)])
def test_it_is_kept_while_no_finished_copy_holds_some_of_its_offsets(start: int, end: int) -> None:
    """It may have finished, and the event that says so be lost."""
    events = [started(2, 10, 19), *copied(3, start, end)]
    assert verdict(events, key(2, start=10)) == ("in-progress", None)
    assert verdict([*events, *copied(4, 10, 19)], key(2, start=10)) == ("orphan", "copy-never-finished")


def test_a_later_copy_that_did_not_finish_either_proves_nothing() -> None:
    assert verdict([started(2, 10, 19), started(3, 10, 19)], key(2, start=10)) == ("in-progress", None)


def test_finished_copies_prove_nothing_while_none_of_its_offsets_began_later() -> None:
    assert verdict([*copied(3, 10, 19), started(2, 10, 19)], key(2, start=10)) == ("in-progress", None)


@pytest.mark.parametrize(("start", "end"), [(20, 29), (0, 9)])
def test_a_later_copy_of_other_offsets_proves_nothing(start: int, end: int) -> None:
    events = [*copied(1, 10, 19), started(2, 10, 19), *copied(3, start, end)]
    assert verdict(events, key(2, start=10)) == ("in-progress", None)


def test_a_later_copy_of_another_partition_proves_nothing() -> None:
    elsewhere = copied(3, 10, 19, partition=replace(PARTITION, partition=1))
    assert verdict([started(2, 10, 19), *elsewhere], key(2, start=10)) == ("in-progress", None)


def test_a_copy_that_began_again_itself_may_still_end() -> None:
    assert verdict([started(2, 10, 19), started(2, 10, 19)], key(2, start=10)) == ("in-progress", None)


def test_a_topic_that_is_gone_owns_nothing() -> None:
    live, lives = frozenset({OTHER_TOPIC_ID}), copied(9, 0, 9, partition=TopicIdPartition(OTHER_TOPIC_ID, "u", 0))
    assert verdict([*copied(1, 0, 9), *lives], key(1), live=live) == ("orphan", "topic-gone")
    assert verdict([started(1, 0, 9), *lives], key(1), live=live) == ("orphan", "copy-never-finished")


@pytest.mark.parametrize("state", RemotePartitionDeleteState)
def test_a_partition_that_is_being_removed_owns_nothing(state: RemotePartitionDeleteState) -> None:
    events = [*copied(1, 0, 9), partition_delete(state)]
    assert verdict(events, key(1)) == ("orphan", "partition-gone")


def test_what_the_state_machine_forbids_changes_no_verdict() -> None:
    assert verdict([*copied(1, 0, 9), updated(1, DELETED)], key(1)) == ("owned", None)
    assert verdict([updated(1, DELETING), *copied(1, 0, 9)], key(1)) == ("owned", None)


@pytest.mark.parametrize("number", [7, 8])
def test_a_segment_that_no_event_could_begin_is_unknown(number: int) -> None:
    assert verdict([*copied(1, 0, 9), updated(number, COPIED)], key(number)) == ("unknown", None)


def test_a_key_that_contradicts_the_metadata_of_its_segment_is_unknown() -> None:
    elsewhere = replace(PARTITION, partition=1)
    assert verdict(copied(1, 0, 9), key(1, start=5)) == ("unknown", None)
    assert verdict([*copied(1, 0, 9), *copied(2, 0, 9, partition=elsewhere)], key(1, partition=elsewhere)) == (
        "unknown",
        None,
    )


def test_a_segment_that_two_partitions_claim_is_unknown() -> None:
    elsewhere = replace(PARTITION, partition=1)
    events = [*copied(1, 0, 9), *copied(1, 0, 9, partition=elsewhere), updated(1, DELETING)]
    assert verdict(events, key(1)) == ("unknown", None)


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


def test_what_was_put_back_is_as_old_as_it_was_before() -> None:
    deleting = [*copied(1, 0, 9), updated(1, DELETING)]
    young_ms = NOW_MS - HOUR_MS

    assert put_back(young_ms, OLD_MS, *deleting) == "orphan"
    assert put_back(young_ms, young_ms, *deleting) == "in-progress"


def test_who_put_it_back_may_know_of_events_that_were_not_read() -> None:
    assert put_back(NOW_MS - HOUR_MS, OLD_MS) == "in-progress"

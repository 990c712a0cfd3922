"""Replay of the metadata topic: what Kafka would refuse becomes a finding, and never hides the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests import sample_events
from tests.event_histories import by_columns
from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    PARTITION,
    TOPIC_ID,
    copied,
    partition_delete,
    segment_id,
    started,
    updated,
)
from tieredctl.model.events import EventRecord, MetadataEvent, RemotePartitionDeleteState
from tieredctl.model.findings import Severity
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

OTHER = TopicIdPartition(TOPIC_ID, "t", 1)
MARKED, STARTED, FINISHED = RemotePartitionDeleteState
REMOVED = [partition_delete(MARKED), partition_delete(STARTED), partition_delete(FINISHED)]


def replay(events: Sequence[MetadataEvent], *, keep_deleted: bool = False) -> ReplayedMetadata:
    records = [EventRecord(3, offset, 0, event) for offset, event in enumerate(events)]
    (metadata,) = by_columns([records], metadata_partitions=4, keep_deleted=keep_deleted)
    return metadata


def ids_of(store: ReplayedMetadata) -> list[str]:
    return [known.metadata.segment_id for _, known in store.segments()]


def test_partitions_have_states_of_their_own() -> None:
    store = replay([*copied(1, 0, 9), *copied(1, 0, 9, partition=OTHER), updated(1, DELETING)])

    assert [(tip.partition, known.metadata.state) for tip, known in store.segments()] == [(0, DELETING), (1, COPIED)]


def test_segments_come_by_topic_partition_and_start_offset() -> None:
    late = TopicIdPartition(TOPIC_ID, "a", 9)
    store = replay([*copied(1, 10, 19), *copied(2, 0, 9), *copied(3, 0, 9, partition=late)])

    assert ids_of(store) == [segment_id(3), segment_id(2), segment_id(1)]


def test_a_deleted_segment_is_gone_or_kept_on_request() -> None:
    events = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]

    assert ids_of(replay(events)) == []
    ((_, known),) = replay(events, keep_deleted=True).segments()
    assert known.metadata.state is DELETED
    assert known.metadata_offset == 3


def test_a_segment_that_is_copied_again_after_its_deletion_is_shown_once() -> None:
    events = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED), *copied(1, 0, 9)]

    ((_, known),) = replay(events, keep_deleted=True).segments()

    assert known.metadata.state is COPIED


def test_a_removed_partition_is_forgotten_with_its_segments() -> None:
    store = replay([*copied(1, 0, 9), *REMOVED])

    assert ids_of(store) == []
    assert PARTITION not in store.caches
    assert store.partition_deletes == {PARTITION: FINISHED}
    assert not store.findings


def test_segments_of_a_removed_partition_are_kept_on_request() -> None:
    assert ids_of(replay([*copied(1, 0, 9), *REMOVED], keep_deleted=True)) == [segment_id(1)]


def test_a_removal_that_skips_a_state_is_noted_and_taken_all_the_same() -> None:
    store = replay([*copied(1, 0, 9), partition_delete(FINISHED)])

    (finding,) = store.findings
    assert finding.code == "event-illegal"
    assert finding.evidence == {
        "metadataPartition": 3,
        "metadataOffset": 2,
        "before": None,
        "after": "DELETE_PARTITION_FINISHED",
    }
    assert ids_of(store) == []


def test_an_event_of_a_removed_partition_is_noted_and_dropped() -> None:
    for event in (started(2, 10, 19), updated(1, DELETING)):
        store = replay([*copied(1, 0, 9), *REMOVED, event])

        (finding,) = store.findings
        assert finding.code == "event-illegal", event
        assert "removed" in finding.message, event
        assert ids_of(store) == [], event


def test_a_removal_that_begins_again_brings_no_partition_back() -> None:
    """Kafka's reader stops at the next event about a segment, whatever was said of the partition in between."""
    store = replay([*copied(1, 0, 9), *REMOVED, partition_delete(MARKED), *copied(2, 10, 19)])

    assert [finding.evidence["metadataOffset"] for finding in store.findings] == [5, 6, 7]
    assert ids_of(store) == []


def test_what_two_leaders_write_of_one_deletion_is_information() -> None:
    """As three brokers of Kafka 4.3.1 left it where retention ran while leaders moved."""
    histories = {
        "both at once": [DELETING, DELETING, DELETED, DELETED],
        "one after the other": [DELETING, DELETED, DELETING, DELETED],
    }
    for name, states in histories.items():
        store = replay([*copied(1, 0, 9), *(updated(1, state) for state in states), *copied(2, 10, 19)])

        assert {finding.code for finding in store.findings} == {"event-illegal"}, name
        assert {finding.severity for finding in store.findings} == {Severity.INFO}, name
        assert ids_of(store) == [segment_id(2)], name


def test_a_deletion_of_what_never_began_and_a_copy_that_ends_after_its_deletion_need_attention() -> None:
    ended = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
    for name, event in {"unknown": updated(2, DELETING), "deleted": updated(1, COPIED)}.items():
        (finding,) = replay([*ended, event]).findings

        assert (finding.code, finding.severity) == ("event-illegal", Severity.WARNING), name


def test_an_illegal_event_is_noted_and_the_rest_is_read() -> None:
    started_as, finished = "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"
    cases: list[tuple[MetadataEvent, str | None, str]] = [
        (updated(1, DELETED), finished, "DELETE_SEGMENT_FINISHED"),
        (started(1, 0, 9), finished, started_as),
        (started(2, 0, 9, state=COPIED), None, finished),
        (updated(2, COPIED), None, finished),
    ]
    for event, before, after in cases:
        store = replay([*copied(1, 0, 9), event, *copied(3, 10, 19)])

        (finding,) = store.findings
        told = {name: finding.evidence[name] for name in ("metadataOffset", "before", "after")}
        assert (finding.code, told) == ("event-illegal", {"metadataOffset": 2, "before": before, "after": after})
        assert ids_of(store) == [segment_id(1), segment_id(3)], event


def test_a_snapshot_record_does_not_belong_in_the_topic() -> None:
    snapshot = replace(sample_events.SNAPSHOT, segment_id=segment_id(9))

    store = replay([snapshot, *copied(1, 0, 9)])

    assert [finding.code for finding in store.findings] == ["event-undecodable"]
    assert ids_of(store) == [segment_id(1)]


def test_a_segment_whose_id_is_made_of_the_halves_of_two_others_is_neither_of_them() -> None:
    one, other, mixed = (uuid_text(high.to_bytes(8) + low.to_bytes(8)) for high, low in ((1, 2), (3, 4), (1, 4)))
    events = [replace(started(0, number, number), segment_id=name) for number, name in enumerate((one, other, mixed))]

    store = replay(events)

    assert [known.metadata.segment_id for _, known in store.known(store.named([one, other]))] == [one, other]

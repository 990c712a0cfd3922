"""Replay by columns tells what replay event by event tells, of every segment, partition, look-up and refusal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import sample_events
from tests.conftest import CAPTURED_CLUSTERS, EXAMPLES, examples
from tests.event_histories import METADATA_PARTITIONS, TEMPERS, Temper, event_by_event, random_histories
from tests.event_histories import by_columns as columns_of_parts
from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import PARTITION, partition_delete, started, updated
from tests.replay_by_events import RemotePartitionMetadataStore
from tests.shares import divided
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    TaggedField,
)
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import segment_document
from tieredctl.ops.metadata.event_reading import read_events, selected_records
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.segment_documents import SegmentDocuments
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.stats import statistics
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.states import Refusal

PLAINLY_NAMED = [
    *(TopicIdPartition(PARTITION.topic_id, PARTITION.topic, number) for number in range(2)),
    TopicIdPartition("B" + PARTITION.topic_id[1:], PARTITION.topic, 0),
    TopicIdPartition(PARTITION.topic_id, "renamed", 0),
]
PARTITIONS = [*PLAINLY_NAMED, TopicIdPartition(PARTITION.topic_id, '"\\\x00\n\x7f\u2028é😀', 0)]
SEGMENTS, EPOCHS, OFFSETS = 5, range(4), range(0, 45, 3)
EVENTS_OF_A_HISTORY = 100
OfSegments = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate
SNAPSHOT = replace(sample_events.SNAPSHOT, segment_id=started(0, 0, 0).segment_id)


def _partitions(form: RecordForm) -> list[TopicIdPartition]:
    """Those that an event of this form can be about: the KIP's has names that Kafka allows alone."""
    return PLAINLY_NAMED if form is RecordForm.KIP_405 else PARTITIONS


@st.composite
def starts(draw: st.DrawFn) -> MetadataEvent:
    start, length = draw(st.integers(0, 30)), draw(st.integers(0, 10))
    epochs = sorted(draw(st.sets(st.sampled_from(EPOCHS), min_size=1, max_size=min(3, length + 1))))
    form = draw(st.sampled_from([RecordForm.KAFKA] * 4 + [RecordForm.KAFKA_BEFORE_3_6, RecordForm.KIP_405]))
    is_newest = form is RecordForm.KAFKA
    return started(
        draw(st.integers(0, SEGMENTS - 1)),
        start,
        start + length,
        {epoch: start + place for place, epoch in enumerate(epochs)},
        partition=draw(st.sampled_from(_partitions(form))),
        state=draw(st.sampled_from([RemoteLogSegmentState.COPY_SEGMENT_STARTED] * 7 + list(RemoteLogSegmentState))),
        form=form,
        author=draw(st.integers(0, 3)),
        event_timestamp_ms=draw(st.integers(1, 1 << 41)),
        custom_metadata=draw(st.sampled_from([None, b"", b"abc"])) if is_newest else None,
        txn_idx_empty=is_newest and draw(st.booleans()),
        tagged_fields=(TaggedField("", 7, b"x"),) if is_newest and draw(st.integers(0, 9)) == 0 else (),
    )


@st.composite
def updates(draw: st.DrawFn) -> MetadataEvent:
    form = draw(st.sampled_from([RecordForm.KAFKA] * 4 + [RecordForm.KAFKA_BEFORE_3_6, RecordForm.KIP_405]))
    return updated(
        draw(st.integers(0, SEGMENTS - 1)),
        draw(st.sampled_from(RemoteLogSegmentState)),
        partition=draw(st.sampled_from(_partitions(form))),
        form=form,
        author=draw(st.integers(0, 3)),
        event_timestamp_ms=draw(st.integers(1, 1 << 41)),
        custom_metadata=draw(st.sampled_from([None, b"", b"defg"])) if form is RecordForm.KAFKA else None,
    )


DELETES = st.builds(
    lambda state, partition: partition_delete(state, partition=partition),
    st.sampled_from(RemotePartitionDeleteState),
    st.sampled_from(PARTITIONS),
)
EVENTS = st.lists(st.one_of(*[starts()] * 5, *[updates()] * 6, DELETES, st.just(SNAPSHOT)), max_size=40)


def by_events(events: Sequence[MetadataEvent], *, keep_deleted: bool) -> RemotePartitionMetadataStore:
    store = RemotePartitionMetadataStore(keep_deleted=keep_deleted)
    store.replay(EventStream(EventsInMemory(events)).records())
    return store


def by_columns(events: Sequence[MetadataEvent], *, keep_deleted: bool) -> ReplayedMetadata:
    found = SegmentEvents(is_described=True)
    read_events(EventStream(EventsInMemory(events)), found)
    return ReplayedMetadata(found, keep_deleted=keep_deleted)


def answers(cache: RemoteLogMetadataCache) -> list[object]:
    """All that a cache can be asked."""
    known = cache.list_remote_log_segments()
    of_epochs = [
        (cache.list_remote_log_segments(epoch), cache.highest_offset_for_epoch(epoch)) for epoch in cache.epochs()
    ]
    look_ups = [cache.remote_log_segment_metadata(epoch, offset) for epoch in EPOCHS for offset in OFFSETS]
    reachable = cache.referenced()
    return [known, of_epochs, look_ups, reachable, sorted({*cache.deleted.stretches})]


def assert_same(columns: ReplayedMetadata, store: RemotePartitionMetadataStore) -> None:
    assert list(columns.segments()) == list(store.segments())
    assert columns.findings == store.findings
    assert columns.partition_deletes == store.partition_deletes
    assert set(columns.caches) == set(store.caches)
    assert {one: answers(cache) for one, cache in columns.caches.items()} == {
        one: answers(cache) for one, cache in store.caches.items()
    }


@settings(max_examples=examples(300))
@given(EVENTS)
def test_every_segment_refusal_and_look_up(events: list[MetadataEvent]) -> None:
    for keep_deleted in (False, True):
        columns, store = by_columns(events, keep_deleted=keep_deleted), by_events(events, keep_deleted=keep_deleted)
        assert_same(columns, store)
        for partition in PARTITIONS:
            assert columns.segments_of(partition) == store.segments_of(partition)


@settings(max_examples=examples(100))
@given(EVENTS, st.integers(1, 10))
def test_in_however_many_parts_and_buckets(events: list[MetadataEvent], part_events: int) -> None:
    with (
        patch("tieredctl.rlmm.event_columns._PART_EVENTS", part_events),
        patch("tieredctl.rlmm.event_columns._BUCKET_EVENTS", 1),
    ):
        assert_same(by_columns(events, keep_deleted=True), by_events(events, keep_deleted=True))


@settings(max_examples=examples(100))
@given(EVENTS, st.integers(0, 40))
def test_what_is_followed_is_what_is_read_at_once(events: list[MetadataEvent], first: int) -> None:
    found = SegmentEvents(is_described=True)
    read_events(EventStream(EventsInMemory(events[:first])), found)
    assert_same(ReplayedMetadata(found), by_events(events[:first], keep_deleted=False))

    read_events(EventStream(EventsInMemory(events), from_offsets={0: first}), found)

    assert_same(ReplayedMetadata(found), by_events(events, keep_deleted=False))


@settings(max_examples=examples(100))
@given(EVENTS)
def test_documents_of_segments(events: list[MetadataEvent]) -> None:
    columns = by_columns(events, keep_deleted=True)

    documents = SegmentDocuments(columns, columns.order)

    expected = [segment_document(known) for _, known in by_events(events, keep_deleted=True).segments()]
    assert list(documents) == expected
    assert "".join(documents.json_lines()) == "".join(json.dumps(document) + "\n" for document in expected)
    assert len(documents) == len(expected)


@settings(max_examples=examples(100))
@given(EVENTS)
def test_what_is_dead_and_what_lives(events: list[MetadataEvent]) -> None:
    total = statistics(EventStream(EventsInMemory(events))).total

    of_segments = sum(isinstance(event, OfSegments) for event in events)
    store, since = by_events([], keep_deleted=False), dict[tuple[object, str], int]()
    for record in EventStream(EventsInMemory(events)).records():
        store.apply(record)
        if isinstance(record.event, OfSegments):
            key = record.event.topic_id_partition, record.event.segment_id
            since[key] = since.get(key, 0) + 1
        known = {(partition, one.metadata.segment_id) for partition, one in store.segments()}
        since = {key: count for key, count in since.items() if key in known}
    assert total["liveSegments"] == len(list(store.segments()))
    assert total["deadEvents"] == of_segments - sum(since.values())


SELECTIONS = st.sampled_from(
    [
        Selection(),
        Selection.of(topic=PARTITION.topic),
        Selection.of(topic_id=PARTITION.topic_id, partition=1),
        Selection.of(segment_id=SNAPSHOT.segment_id),
        Selection.of(topic="renamed", segment_id=SNAPSHOT.segment_id),
    ]
)


def is_meant(event: MetadataEvent, selection: Selection) -> bool:
    if isinstance(event, RemotePartitionDeleteMetadata):
        return not selection.segment_ids and selection.has(event.topic_id_partition)
    is_of_partition = not isinstance(event, OfSegments) or selection.has(event.topic_id_partition)
    return is_of_partition and selection.names_segment(event.segment_id)


@settings(max_examples=examples(100))
@given(EVENTS, SELECTIONS)
def test_objects_are_made_of_what_is_selected(events: list[MetadataEvent], selection: Selection) -> None:
    every = EventStream(EventsInMemory(events)).records()

    assert list(selected_records(EventStream(EventsInMemory(events)), selection)) == [
        record for record in every if is_meant(record.event, selection)
    ]


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_metadata_without_events(keep_deleted: bool) -> None:
    assert_same(by_columns([], keep_deleted=keep_deleted), by_events([], keep_deleted=keep_deleted))


def in_parts(records: list[EventRecord], count: int) -> list[list[EventRecord]]:
    bounds = [len(records) * number // count for number in range(count + 1)]
    return [records[first:last] for first, last in pairwise(bounds)]


def assert_same_in_parts(records: list[EventRecord], metadata_partitions: int = METADATA_PARTITIONS) -> None:
    for keep_deleted in (False, True):
        parts = in_parts(records, 3)
        columns = columns_of_parts(parts, metadata_partitions, keep_deleted=keep_deleted)
        for found, store in zip(columns, event_by_event(parts, keep_deleted=keep_deleted), strict=True):
            store.findings.sort(key=place_of)
            assert_same(found, store)


def place_of(finding: Finding) -> tuple[int, int]:
    return int(str(finding.evidence["metadataPartition"])), int(str(finding.evidence["metadataOffset"]))


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_long_histories_of_several_metadata_partitions(temper: Temper) -> None:
    for records in divided([*random_histories("columns", temper, EVENTS_OF_A_HISTORY * EXAMPLES)]):
        assert_same_in_parts(records)


@pytest.mark.parametrize("capture", CAPTURED_CLUSTERS)
def test_what_real_clusters_wrote(captures: Path, capture: str) -> None:
    source = LogDirectories([captures / capture / "data"])

    assert_same_in_parts(list(EventStream(source).records()), len(source.metadata_partitions()))


def test_histories_have_every_reason_to_refuse_an_event() -> None:
    histories = random_histories("columns", Temper(15), EVENTS_OF_A_HISTORY * EXAMPLES)
    findings = [finding for records in histories for store in event_by_event([records]) for finding in store.findings]

    assert {why for why in Refusal if any(finding.message.endswith(why.value) for finding in findings)} == set(Refusal)

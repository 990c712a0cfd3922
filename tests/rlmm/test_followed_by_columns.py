"""What commands know that follow the metadata by columns, and what local stores are compared with, is what the events
tell one by one: of random histories that go on, and of what real clusters wrote."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cache_by_events import CacheByEvents
from tests.conftest import CAPTURED_CLUSTERS, EXAMPLES
from tests.event_histories import (
    METADATA_PARTITIONS,
    TEMPERS,
    HistoryInMemory,
    Temper,
    event_by_event,
    partition_of,
    random_histories,
)
from tests.refusals import refused_with
from tests.replay_by_events import RemotePartitionMetadataStore
from tests.shares import divided
from tieredctl.errors import ErrorCode
from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.formats.committed_offsets import CommittedOffsets, CommittedOffsetsForm
from tieredctl.formats.remote_log_snapshot import RemoteLogSnapshot
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    TaggedField,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.metadata.broker_events import BrokerEvent
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.store_check.local_stores import LocalStore, MetadataToCheck, PartitionFolder
from tieredctl.ops.store_check.partition_folder_check import check_partition_folder
from tieredctl.ops.tiering.remote_topic import RemoteTopic
from tieredctl.ops.topic_removal.topic_metadata import TopicMetadata
from tieredctl.ports.cluster import PartitionDescription, TopicDescription
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.rlmm.cache import RemoteLogMetadataCache, bytes_from, segments_in_use

EVENTS_OF_A_HISTORY = 15
DELETING = (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
AT_MOST_BEGUN = (None, RemoteLogSegmentState.COPY_SEGMENT_STARTED)
NEVER_NAMED = uuid_text(b"no such segment!")
each_temper = pytest.mark.parametrize("temper", TEMPERS, ids=str)
each_capture = pytest.mark.parametrize("capture", CAPTURED_CLUSTERS)
History = list[EventRecord]
Parts = Sequence[History]


class GrowingHistory(HistoryInMemory):
    """A source that has one part more of a history each time it is read."""

    def __init__(self, parts: Parts, metadata_partitions: int) -> None:
        super().__init__(parts[0], metadata_partitions)
        self._parts = list(parts)
        self._number, self._metadata_partitions = 0, metadata_partitions

    def opened(self) -> GrowingHistory:
        return self

    def advance(self) -> bool:
        self._number += 1
        read = [record for part in self._parts[: self._number + 1] for record in part]
        HistoryInMemory.__init__(self, read, self._metadata_partitions)
        return True


def varied(records: History) -> History:
    """The same, some of it by tools, and in the forms of several releases."""
    source = random.Random(len(records))
    return [replace(record, event=_varied(record.event, source)) for record in records]


def _varied(event: MetadataEvent, source: random.Random) -> MetadataEvent:
    fields: dict[str, Any] = {"author": source.choice([NO_BROKER, 1, 2])}
    plain = not getattr(event, "custom_metadata", None) and not getattr(event, "txn_idx_empty", False)
    if plain and source.random() < 0.3:
        fields["form"] = source.choice([RecordForm.KAFKA_BEFORE_3_6, RecordForm.KIP_405])
        if hasattr(event, "custom_metadata"):
            fields["custom_metadata"] = None
    elif source.random() < 0.1:
        fields["tagged_fields"] = (TaggedField("", 7, b"x"),)
    return replace(event, **fields)


def histories(name: str, temper: Temper) -> Iterator[Parts]:
    drawn = [*random_histories(name, temper, EVENTS_OF_A_HISTORY * EXAMPLES)]
    return (in_parts(varied(records)) for records in divided(drawn))


def in_parts(records: History, count: int = 3) -> Parts:
    bounds = [len(records) * number // count for number in range(count + 1)]
    return [records[first:last] for first, last in pairwise(bounds)]


def captured(captures: Path, capture: str) -> tuple[Parts, int]:
    source = LogDirectories([captures / capture / "data"])
    return in_parts(list(EventStream(source).records())), len(source.metadata_partitions())


def so_far(parts: Parts) -> Iterator[tuple[History, RemotePartitionMetadataStore, RemotePartitionMetadataStore]]:
    """After each part: all events, what they leave, and that with what is gone."""
    read: History = []
    ways = zip(parts, event_by_event(parts), event_by_event(parts, keep_deleted=True), strict=True)
    for part, store, with_deleted in ways:
        read += part
        yield read, store, with_deleted


def partitions_in(records: Iterable[EventRecord]) -> list[TopicIdPartition]:
    return sorted({partition_of(record.event) for record in records})


def in_topic_order(records: History) -> History:
    return sorted(records, key=lambda record: (record.metadata_partition, record.metadata_offset))


# What `recover metadata` knows


def assert_recovery_knows(parts: Parts, metadata_partitions: int) -> None:
    source = GrowingHistory(parts, metadata_partitions)
    known, traits = KnownMetadata(FollowedMetadata(source.opened)), BrokerTraits()
    for part, (read, store, _) in zip(parts, so_far(parts), strict=True):
        known.refresh()

        for record in in_topic_order(part):
            traits = shown_by(traits, record)
        ids = [*{segment_id for record in read if (segment_id := id_in(record))}, NEVER_NAMED, "not an id"]
        deleted = {id_in(record) for record in read if is_deletion(record)}
        assert known.traits == traits
        assert known.deleted(ids) == deleted
        for partition in partitions_in(read):
            cache = store.caches.get(partition, CacheByEvents())
            is_removed = partition in store.partition_deletes
            assert known.segments(partition) == {
                one.metadata.segment_id: one.metadata for one in store.segments_of(partition)
            }
            assert known.is_removed(partition) is is_removed
            assert known.begun_at_most(partition, ids) == {
                one for one in ids if not is_removed and one not in deleted and cache.state_of(one) in AT_MOST_BEGUN
            }


def shown_by(traits: BrokerTraits, record: EventRecord) -> BrokerTraits:
    event = record.event
    if event.author == NO_BROKER:
        return traits
    custom = event.custom_metadata if isinstance(event, RemoteLogSegmentMetadataUpdate) else None
    tells = isinstance(event, RemoteLogSegmentMetadata) and event.txn_idx_empty
    form = getattr(event, "form", RecordForm.KAFKA)
    return BrokerTraits(custom or traits.custom_metadata, form, traits.tells_txn or tells)


def id_in(record: EventRecord) -> str | None:
    return getattr(record.event, "segment_id", None)


def is_deletion(record: EventRecord) -> bool:
    return isinstance(record.event, RemoteLogSegmentMetadataUpdate) and record.event.state in DELETING


# What `partition remove` knows


def assert_removal_knows(parts: Parts, metadata_partitions: int) -> None:
    for topic_id in {one.topic_id for one in partitions_in(record for part in parts for record in part)}:
        source = GrowingHistory(parts, metadata_partitions)
        metadata = TopicMetadata(topic_id, None, FollowedMetadata(source.opened))
        last: dict[TopicIdPartition, BrokerEvent] = {}
        for part, (read, _, store) in zip(parts, so_far(parts), strict=True):
            metadata.refresh()

            for record in in_topic_order(part):
                if record.event.author != NO_BROKER:
                    event = BrokerEvent(record.event.author, record.metadata_offset, record.timestamp_ms)
                    last[partition_of(record.event)] = event
            known = sorted(one for one in {*store.caches, *store.partition_deletes} if one.topic_id == topic_id)
            assert metadata.known_topic_ids == {one.topic_id for one in partitions_in(read)}
            if not known:
                with refused_with(ErrorCode.UNKNOWN_TOPIC):
                    metadata.partitions()
                continue
            assert metadata.partitions() == known
            for partition in known:
                state = metadata.state(partition)
                assert state.delete_state == store.partition_deletes.get(partition)
                assert list(state.segments) == [one.metadata for one in store.segments_of(partition)]
                assert state.last_broker_event == last.get(partition)


# What `topic enable` and `topic disable` know


def assert_topic_knows(parts: Parts, metadata_partitions: int) -> None:
    every = partitions_in(record for part in parts for record in part)
    for topic_id, name in {(one.topic_id, one.topic) for one in every}:
        own = [one for one in every if (one.topic_id, one.topic) == (topic_id, name)]
        described = [PartitionDescription(one.partition, 0, 0, [0], [0]) for one in own]
        source = GrowingHistory(parts, metadata_partitions)
        remote = RemoteTopic(TopicDescription(name, topic_id, described), FollowedMetadata(source.opened))
        for _, store, _ in so_far(parts):
            remote.refresh()

            caches = {one: store.caches.get(one, CacheByEvents()) for one in own}
            segments = {
                one: [known.metadata for known in cache.list_remote_log_segments()] for one, cache in caches.items()
            }
            every_segment = [segment for one in own for segment in segments[one]]
            assert remote.segment_count == len(every_segment)
            assert remote.size.known == sum(one.segment_size_in_bytes for one in every_segment)
            assert sorted(remote.segment_ids()) == sorted(one.segment_id for one in every_segment)
            for partition in own:
                assert_partition_of_topic(remote, partition, caches[partition], segments[partition])


def assert_partition_of_topic(
    remote: RemoteTopic,
    partition: TopicIdPartition,
    cache: RemoteLogMetadataCache,
    segments: Sequence[RemoteLogSegmentMetadata],
) -> None:
    number, held = partition.partition, remote.segments(partition.partition)
    assert held.count == len(segments)
    assert held.size.known == sum(one.segment_size_in_bytes for one in segments)
    assert held.start_offset == min((one.start_offset for one in segments), default=None)
    assert held.end_offset == max((one.end_offset for one in segments), default=None)
    assert remote.highest_copied(number) == cache.highest_offset()
    assert remote.highest_deleted(number) == cache.deleted.highest
    used = segments_in_use(cache)
    for offset in {0, *(one.start_offset + 1 for one in segments), *(one.end_offset + 1 for one in segments)}:
        below = sum(one.segment_size_in_bytes for one in used) - bytes_from(used, offset).least
        assert remote.bytes_below(number, offset).known == below


KNOWN: dict[str, Callable[[Parts, int], None]] = {
    "recovery": assert_recovery_knows,
    "removal": assert_removal_knows,
    "topic": assert_topic_knows,
}
each_purpose = pytest.mark.parametrize("purpose", KNOWN)


@each_purpose
@each_temper
def test_what_commands_know_of_random_histories(purpose: str, temper: Temper) -> None:
    for parts in histories(purpose, temper):
        KNOWN[purpose](parts, METADATA_PARTITIONS)


@each_purpose
@each_capture
def test_what_commands_know_of_captured_clusters(captures: Path, purpose: str, capture: str) -> None:
    KNOWN[purpose](*captured(captures, capture))


# What `store check` compares local stores with


def assert_check_knows(parts: Parts, metadata_partitions: int, source: random.Random) -> None:
    records = in_topic_order([record for part in parts for record in part])
    read_up_to = {number: source.randrange(-1, len(records)) for number in range(metadata_partitions)}
    del read_up_to[source.randrange(metadata_partitions)]
    snapshots = {
        (one.topic, one.partition): RemoteLogSnapshot(
            source.randrange(metadata_partitions), source.randrange(-1, len(records)), ()
        )
        for one in partitions_in(records)
        if source.random() < 0.8
    }
    folders = [
        PartitionFolder(Path(), topic, partition, None, None, snapshot, None)
        for (topic, partition), snapshot in snapshots.items()
    ]
    committed = CommittedOffsets(CommittedOffsetsForm.KAFKA, read_up_to) if source.random() < 0.8 else None
    store = LocalStore(Path("a"), committed_offsets=committed, partitions=folders)

    known = MetadataToCheck(EventStream(HistoryInMemory(records, metadata_partitions)), [store])

    as_of, unread = RemotePartitionMetadataStore(), Counter[TopicIdPartition]()
    first: dict[TopicIdPartition, int] = {}
    for record in records:
        partition = partition_of(record.event)
        first.setdefault(partition, record.metadata_partition)
        snapshot = snapshots.get((partition.topic, partition.partition))
        if snapshot is None or snapshot.metadata_partition != record.metadata_partition:
            continue
        if record.metadata_offset <= snapshot.metadata_partition_offset:
            as_of.apply(record)
        elif committed and record.metadata_offset <= read_up_to.get(record.metadata_partition, -1):
            unread[partition] += 1
    assert known.metadata_partition_of == first
    for partition in partitions_in(records):
        assert known.as_of_store[Path("a")].unread_events(partition) == unread[partition]
        assert known.as_of_store[Path("a")].segments(partition) == {
            one.metadata.segment_id: one.metadata for one in as_of.segments_of(partition)
        }
    (store_of_all,) = event_by_event([records], keep_deleted=True)
    ids = [*{one for record in records if (one := id_in(record))}, NEVER_NAMED, "not an id"]
    assert known.segments(ids) == {one.metadata.segment_id: one.metadata for _, one in store_of_all.segments()}


@each_temper
def test_what_local_stores_are_compared_with(temper: Temper) -> None:
    for number, parts in enumerate(histories("check", temper)):
        assert_check_knows(parts, METADATA_PARTITIONS, random.Random(number))


@each_capture
def test_what_local_stores_of_a_captured_cluster_are_compared_with(captures: Path, capture: str) -> None:
    parts, metadata_partitions = captured(captures, capture)
    for number in range(5):
        assert_check_knows(parts, metadata_partitions, random.Random(number))


def contradicted(checkpoint: Sequence[EpochEntry], segments: Iterable[RemoteLogSegmentMetadata]) -> dict[int, str]:
    """The leader epochs that segments have otherwise than a checkpoint, each with the first that does."""
    first, *later = checkpoint
    starts = {entry.epoch: entry.start_offset for entry in later}
    found: dict[int, str] = {}
    for segment in sorted(segments, key=lambda one: (one.start_offset, one.segment_id)):
        for number, (epoch, offset) in enumerate(segment.segment_leader_epochs):
            if epoch in starts:
                wrong = offset != starts[epoch] if number else offset < starts[epoch]
            else:
                wrong = epoch == first.epoch and number > 0 and offset > first.start_offset
            if wrong:
                found.setdefault(epoch, segment.segment_id)
    return found


@each_temper
def test_leader_epochs_of_folders_are_held_against_every_segment(temper: Temper) -> None:
    source = random.Random(1)
    for parts in histories("folders", temper):
        records = in_topic_order([record for part in parts for record in part])
        (store,) = event_by_event([records])
        known = MetadataToCheck(EventStream(HistoryInMemory(records)), [])
        for partition, cache in store.caches.items():
            segments = (one.metadata for one in cache.list_remote_log_segments())
            finished = [one for one in segments if one.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]
            entries = [EpochEntry(epoch, source.randrange(60)) for epoch in sorted(source.sample(range(6), 3))]
            own = {epoch: offset for one in finished for epoch, offset in one.segment_leader_epochs}
            checkpoint = [
                one._replace(start_offset=own.get(one.epoch, 0)) if source.random() < 0.5 else one for one in entries
            ]
            topic, number, topic_id = partition.topic, partition.partition, partition.topic_id
            folder = PartitionFolder(Path("f"), topic, number, topic_id, checkpoint, None, None)

            findings = list(check_partition_folder(LocalStore(Path("a")), folder, known))

            epochs = {finding.evidence["leaderEpoch"]: finding.evidence["segmentId"] for finding in findings}
            assert epochs == contradicted(checkpoint, finished)
            assert len(findings) == len(epochs)

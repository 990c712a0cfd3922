"""Random histories of the metadata topic: several partitions whose copies overlap, come again, fail and are deleted, in
order and out of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, TOPIC_ID, partition_delete, started, updated
from tests.replay_by_events import RemotePartitionMetadataStore
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.formats.record_chunks import MetadataRecord, RecordChunk, chunk_of
from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.metadata_source import OffsetRange
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents

METADATA_PARTITIONS = 3
PARTITIONS = (
    PARTITION,
    TopicIdPartition(TOPIC_ID, "t", 1),
    TopicIdPartition(uuid_text(bytes(range(16))), "t", 0),  # of another topic that has the name too
    TopicIdPartition(uuid_text(bytes(range(1, 17))), "other", 7),
)
EPOCHS = range(6)
_SEGMENTS_OF_ONE = 1_000
_CHUNK = 50
_STATES = list(RemoteLogSegmentState)
_REMOVALS = list(RemotePartitionDeleteState)


@dataclass(frozen=True)
class Temper:
    """How a history misbehaves: the chances, in percent, of an event out of order and of epochs without sense."""

    disorder: int
    odd_epochs: int = 0

    def __str__(self) -> str:
        return f"{self.disorder}% disorder, {self.odd_epochs}% odd epochs"


TEMPERS = (Temper(0), Temper(15), Temper(50), Temper(15, 30))


def random_histories(name: str, temper: Temper, events: int) -> Iterator[list[EventRecord]]:
    """Histories of 4 to 500 events, until there are so many in all. The same arguments give the same ones."""
    seed = 0
    while events > 0:
        source = random.Random(f"{name} {temper} {seed}")
        history = random_history(source, temper, int(2 ** source.uniform(2, 9)))
        yield history
        events -= len(history)
        seed += 1


def random_history(source: random.Random, temper: Temper, events: int) -> list[EventRecord]:
    """In the order of writing; each partition's events are where Kafka puts them."""
    names = source.sample(PARTITIONS, source.randint(1, len(PARTITIONS)))
    # Ids are random, but nothing keeps two partitions from having the same.
    spacing = 0 if source.random() < 0.2 else _SEGMENTS_OF_ONE
    last_offset, segments = source.choice([60, 60, 400]), max(12, events // 8)
    lives = [_Life(name, number * spacing, segments, last_offset) for number, name in enumerate(names)]
    places = {one: metadata_partition(one.topic_id, one.partition, METADATA_PARTITIONS) for one in names}
    offsets = Counter[int]()
    records = []
    for number in range(events):
        event = source.choice(lives).next_event(source, temper)
        place = places[partition_of(event)]
        records.append(EventRecord(place, offsets[place], FIRST_TIMESTAMP_MS + number, event))
        offsets[place] += 1
    return records


def partition_of(event: MetadataEvent) -> TopicIdPartition:
    """The user partition that an event of the topic names."""
    assert not isinstance(event, RemoteLogSegmentMetadataSnapshot)  # those are in files of brokers alone
    return event.topic_id_partition


@dataclass
class HistoryInMemory(EventsInMemory):
    """A `MetadataSource` of several metadata partitions, some records a chunk."""

    def __init__(self, records: Iterable[EventRecord], metadata_partitions: int = METADATA_PARTITIONS) -> None:
        super().__init__([])
        self._records: list[list[MetadataRecord]] = [[] for _ in range(metadata_partitions)]
        self.add(records)

    def add(self, records: Iterable[EventRecord]) -> None:
        """What is written next."""
        for record in records:
            stored = MetadataRecord(record.metadata_offset, record.timestamp_ms, encode_event(record.event))
            self._records[record.metadata_partition].append(stored)

    def metadata_partitions(self) -> list[int]:
        return list(range(len(self._records)))

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        records = self._records[metadata_partition]
        for first in range(0, len(records), _CHUNK):
            yield chunk_of(records[first : first + _CHUNK]).starting_at(from_offset)

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        records = self._records[metadata_partition]
        return OffsetRange(0, records[-1].offset + 1 if records else 0)


def by_columns(
    parts: Iterable[list[EventRecord]], metadata_partitions: int = METADATA_PARTITIONS, *, keep_deleted: bool = False
) -> Iterator[ReplayedMetadata]:
    """What is known after each part, read as somebody reads who follows the topic."""
    source, events, ends = HistoryInMemory([], metadata_partitions), SegmentEvents(is_described=True), dict[int, int]()
    for part in parts:
        source.add(part)
        read_events(EventStream(source, from_offsets=ends), events)
        ends = {number: source.offset_range(number).end for number in source.metadata_partitions()}
        yield ReplayedMetadata(events, keep_deleted=keep_deleted)


def event_by_event(
    parts: Iterable[list[EventRecord]], *, keep_deleted: bool = False
) -> Iterator[RemotePartitionMetadataStore]:
    """What is known after each part, of events one after the other."""
    store = RemotePartitionMetadataStore(keep_deleted=keep_deleted)
    for part in parts:
        store.replay(replace(record, event=decode_event(encode_event(record.event))) for record in part)
        yield store


def boundaries(records: Iterable[EventRecord], partition: TopicIdPartition) -> list[int]:
    """The offsets at which one of the partition's segments or leader epochs begins or ends, with their neighbours."""
    found: set[int] = set()
    for record in records:
        event = record.event
        if isinstance(event, RemoteLogSegmentMetadata) and event.topic_id_partition == partition:
            found.update((event.end_offset, event.end_offset + 1))
            for offset in (event.start_offset, *(start for _, start in event.segment_leader_epochs)):
                found.update((offset - 1, offset))
    return sorted(offset for offset in found if offset >= 0)


@dataclass
class _Life:
    """A partition as it goes on."""

    partition: TopicIdPartition
    first_number: int
    most_segments: int
    last_offset: int
    states: dict[int, RemoteLogSegmentState | None] = field(default_factory=dict)
    ranges: list[tuple[int, int, dict[int, int]]] = field(default_factory=list)
    removal: RemotePartitionDeleteState | None = None

    def next_event(self, source: random.Random, temper: Temper) -> MetadataEvent:
        if source.random() < 0.02:
            return self._removal_event(source, temper)
        if len(self.states) < self.most_segments and (not self.states or source.random() < 0.35):
            number = self.first_number + len(self.states)
            self.states[number] = None
        else:
            number = source.choice(list(self.states))
        state = _next_state(source, self.states[number], temper)
        self.states[number] = state
        return self._segment_event(source, temper, number, state)

    def _removal_event(self, source: random.Random, temper: Temper) -> MetadataEvent:
        following = 0 if self.removal is None else min(self.removal + 1, len(_REMOVALS) - 1)
        is_odd = source.randrange(100) < temper.disorder
        self.removal = source.choice(_REMOVALS) if is_odd else _REMOVALS[following]
        return partition_delete(self.removal, partition=self.partition)

    def _segment_event(
        self, source: random.Random, temper: Temper, number: int, state: RemoteLogSegmentState
    ) -> MetadataEvent:
        fields: dict[str, Any] = {
            "partition": self.partition,
            "author": source.randrange(5),
            "event_timestamp_ms": FIRST_TIMESTAMP_MS + source.randrange(10**6),
            "custom_metadata": source.choice([None, None, b"", b"key"]),
        }
        starts = state is RemoteLogSegmentState.COPY_SEGMENT_STARTED and source.randrange(100) >= temper.disorder // 3
        if not starts and source.randrange(300) >= temper.disorder:
            return updated(number, state, **fields)
        # A copy that failed is tried again under another id: the same range once more.
        again = self.ranges and source.random() < 0.3
        start, end, epochs = source.choice(self.ranges) if again else self._range(source, temper)
        self.ranges.append((start, end, epochs))
        fields["txn_idx_empty"] = source.random() < 0.6
        fields["segment_size_in_bytes"] = source.randrange(10**6)
        fields["max_timestamp_ms"] = FIRST_TIMESTAMP_MS - source.randrange(10**6)
        return started(number, start, end, epochs, state=state, **fields)

    def _range(self, source: random.Random, temper: Temper) -> tuple[int, int, dict[int, int]]:
        start = source.randrange(self.last_offset)
        end = source.randint(start, min(start + 25, self.last_offset))
        if source.randrange(100) < temper.odd_epochs:
            return start, end, {epoch: source.randrange(self.last_offset) for epoch in sorted(source.sample(EPOCHS, 2))}
        count = source.choice([1, 1, 1, 2, 3])
        bounds = [start, *sorted(source.randint(start, end) for _ in range(count - 1))]
        return start, end, dict(zip(sorted(source.sample(EPOCHS, count)), bounds, strict=True))


def _next_state(source: random.Random, before: RemoteLogSegmentState | None, temper: Temper) -> RemoteLogSegmentState:
    if source.randrange(100) < temper.disorder:
        return source.choice(_STATES)
    if before is None or before is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
        return RemoteLogSegmentState.COPY_SEGMENT_STARTED
    failed = before is RemoteLogSegmentState.COPY_SEGMENT_STARTED and source.random() < 0.2
    return RemoteLogSegmentState(before + (2 if failed else 1))

"""`metadata stats`: what a metadata partition costs, how much of it is still of use, how long a broker replays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl.kafka.source import NO_VALUE, RecordChunk
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.known_sum import known_sum
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

ASSUMED_EVENTS_PER_SECOND = 100_000
"""How fast a broker replays. Kafka 4.3.1 took 5 s for a million events of one partition on two cores, without other
load; a busy broker with its metadata elsewhere takes longer."""

_RATIO_DIGITS, _SECONDS_DIGITS = 4, 3


@dataclass(slots=True)
class EventStatistics:
    """Counts of one metadata partition, or of several together. `value_bytes` leaves keys and batch headers out."""

    events: int = 0
    value_bytes: int = 0
    undecodable: int = 0
    events_by_type: Counter[str] = field(default_factory=Counter)
    events_by_state: Counter[str] = field(default_factory=Counter)
    dead_events: int = 0
    """Events of segments that are no longer known: nothing would change without them."""
    live_segments: int = 0
    unkeyed: int | None = 0
    """Records without a key, which a compacted topic refuses; None where the source does not tell keys."""
    first_event_timestamp_ms: int | None = None
    last_event_timestamp_ms: int | None = None

    def document(self) -> Document:
        """The counts, and what follows from them."""
        return {
            "events": self.events,
            "bytes": self.value_bytes,
            "undecodable": self.undecodable,
            "eventsByType": dict(sorted(self.events_by_type.items())),
            "eventsByState": dict(sorted(self.events_by_state.items())),
            "deadEvents": self.dead_events,
            "deadRatio": round(self.dead_events / self.events, _RATIO_DIGITS) if self.events else 0.0,
            "liveSegments": self.live_segments,
            "unkeyed": self.unkeyed,
            "firstEventTimestampMs": self.first_event_timestamp_ms,
            "lastEventTimestampMs": self.last_event_timestamp_ms,
            "replaySeconds": round(self.events / ASSUMED_EVENTS_PER_SECOND, _SECONDS_DIGITS),
        }


class MetadataStatistics(NamedTuple):
    """A document a metadata partition, and one of all together; what each partition's replay has left."""

    partitions: list[Document]
    total: Document
    stores: list[RemotePartitionMetadataStore]


def statistics(stream: EventStream) -> MetadataStatistics:
    """Reads a stream to its end. What replay finds is added to the stream's findings."""
    tallies = {partition: _Tally() for partition in stream.source.metadata_partitions()}
    for metadata_partition, chunk in stream.chunks():
        tally = tallies[metadata_partition]
        tally.count(chunk)
        for record in stream.decode(metadata_partition, chunk, range(len(chunk))):
            tally.take(record)
    for number, tally in tallies.items():
        compaction = stream.compaction.by_partition.get(number)
        tally.tombstones = compaction.tombstones if compaction else 0
        stream.findings += stream.not_explained(tally.store.findings)
    found = {partition: tally.closed() for partition, tally in tallies.items()}
    documents = [_partition_document(stream, partition, one) for partition, one in found.items()]
    total = _together(list(found.values())).document()
    total |= {"assumedEventsPerSecond": ASSUMED_EVENTS_PER_SECOND}
    return MetadataStatistics(documents, total, [tally.store for tally in tallies.values()])


def _partition_document(stream: EventStream, metadata_partition: int, found: EventStatistics) -> Document:
    start, end = stream.source.offset_range(metadata_partition)
    place = {"metadataPartition": metadata_partition, "startOffset": start, "endOffset": end}
    return place | found.document()


def _together(every: Sequence[EventStatistics]) -> EventStatistics:
    firsts = [one.first_event_timestamp_ms for one in every if one.first_event_timestamp_ms is not None]
    lasts = [one.last_event_timestamp_ms for one in every if one.last_event_timestamp_ms is not None]
    return EventStatistics(
        events=sum(one.events for one in every),
        value_bytes=sum(one.value_bytes for one in every),
        undecodable=sum(one.undecodable for one in every),
        events_by_type=sum((one.events_by_type for one in every), Counter()),
        events_by_state=sum((one.events_by_state for one in every), Counter()),
        dead_events=sum(one.dead_events for one in every),
        live_segments=sum(one.live_segments for one in every),
        unkeyed=known_sum([one.unkeyed for one in every]),
        first_event_timestamp_ms=min(firsts, default=None),
        last_event_timestamp_ms=max(lasts, default=None),
    )


class _Tally:
    """Replays a metadata partition, and keeps how many events each segment that is still known has had."""

    def __init__(self) -> None:
        self.store = RemotePartitionMetadataStore()
        self._statistics = EventStatistics()
        self._events: dict[TopicIdPartition, Counter[str]] = {}
        self._decoded = 0
        self.tombstones = 0

    def count(self, chunk: RecordChunk) -> None:
        self._statistics.events += len(chunk)
        if len(chunk):
            self._statistics.unkeyed = known_sum([self._statistics.unkeyed, chunk.unkeyed])
        lengths = (end - start for start, end in zip(chunk.starts, chunk.ends, strict=True) if start != NO_VALUE)
        self._statistics.value_bytes += int(sum(lengths))

    def take(self, record: EventRecord) -> None:
        event, statistics = record.event, self._statistics
        self._decoded += 1
        statistics.events_by_type[type(event).__name__] += 1
        statistics.events_by_state[event.state.name] += 1
        first, last = statistics.first_event_timestamp_ms, statistics.last_event_timestamp_ms
        timestamp = event.event_timestamp_ms
        statistics.first_event_timestamp_ms = timestamp if first is None else min(first, timestamp)
        statistics.last_event_timestamp_ms = timestamp if last is None else max(last, timestamp)
        self.store.apply(record)
        if isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate):
            self._count_segment(event.topic_id_partition, event.segment_id)
        elif isinstance(event, RemotePartitionDeleteMetadata) and event.topic_id_partition not in self.store.caches:
            gone = self._events.pop(event.topic_id_partition, Counter())
            statistics.dead_events += gone.total()

    def _count_segment(self, partition: TopicIdPartition, segment_id: str) -> None:
        events = self._events.setdefault(partition, Counter())
        events[segment_id] += 1
        cache = self.store.caches.get(partition)
        if cache is None or cache.state_of(segment_id) is None:
            self._statistics.dead_events += events.pop(segment_id)

    def closed(self) -> EventStatistics:
        statistics = self._statistics
        statistics.undecodable = statistics.events - self._decoded - self.tombstones
        statistics.live_segments = sum(1 for _ in self.store.segments())
        return statistics

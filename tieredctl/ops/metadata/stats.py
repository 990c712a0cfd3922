"""`metadata stats`: what a metadata partition costs, how much of it is still of use, how long a broker replays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.formats.record_chunks import NO_VALUE, RecordChunk
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_reading import event_chunk
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents

ASSUMED_EVENTS_PER_SECOND = 100_000
"""How fast a broker replays. Kafka 4.3.1 took 5 s for a million events of one partition on two cores, without other
load; a busy broker with its metadata elsewhere takes longer."""

_RATIO_DIGITS, _SECONDS_DIGITS = 4, 3
_KINDS: dict[int, tuple[type[MetadataEvent], type[IntEnum], str]] = {
    SEGMENT_METADATA: (RemoteLogSegmentMetadata, RemoteLogSegmentState, "RemoteLogSegmentState"),
    SEGMENT_METADATA_UPDATE: (RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState, "RemoteLogSegmentState"),
    PARTITION_DELETE: (RemotePartitionDeleteMetadata, RemotePartitionDeleteState, "RemotePartitionDeleteState"),
}


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
    """Records without a key, which a compacted topic refuses; None where the source does not report keys."""
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
    stores: list[ReplayedMetadata]
    last_unkeyed: dict[int, int]
    """By metadata partition, the offset of the last record without a key; those that have none are missing."""


def statistics(stream: EventStream, *, is_described: bool = False) -> MetadataStatistics:
    """Reads a stream to its end. What replay finds is added to the stream's findings; it keeps what its segments say if
    it is described."""
    tallies = {partition: _Tally(is_described=is_described) for partition in stream.source.metadata_partitions()}
    last_unkeyed: dict[int, int] = {}
    for metadata_partition, chunk in stream.chunks():
        if chunk.last_unkeyed is not None:
            last_unkeyed[metadata_partition] = chunk.last_unkeyed
        tallies[metadata_partition].count(chunk)
        tallies[metadata_partition].take(event_chunk(stream, metadata_partition, chunk))
    documents, every, stores = [], [], []
    for number, tally in tallies.items():
        compaction = stream.compaction.by_partition.get(number)
        tally.tombstones = compaction.tombstones if compaction else 0
        partition_statistics, metadata = tally.closed()
        stream.findings += stream.not_explained(metadata.findings)
        documents.append(_partition_document(stream, number, partition_statistics))
        every.append(partition_statistics)
        stores.append(metadata)
    total = _together(every).document()
    total |= {"assumedEventsPerSecond": ASSUMED_EVENTS_PER_SECOND}
    return MetadataStatistics(documents, total, stores, last_unkeyed)


def _partition_document(stream: EventStream, metadata_partition: int, counted: EventStatistics) -> Document:
    start, end = stream.source.offset_range(metadata_partition)
    place = {"metadataPartition": metadata_partition, "startOffset": start, "endOffset": end}
    return place | counted.document()


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


class EventTally:
    """Counts the records of a metadata partition as they are read."""

    def __init__(self) -> None:
        self._statistics = EventStatistics()
        self._decoded = 0
        self._of_segments = 0
        self.tombstones = 0

    def count(self, chunk: RecordChunk) -> None:
        """The next records."""
        statistics = self._statistics
        statistics.events += len(chunk)
        if len(chunk):
            statistics.unkeyed = known_sum([statistics.unkeyed, chunk.unkeyed])
        starts, ends = np.asarray(chunk.starts, np.int64), np.asarray(chunk.ends, np.int64)
        statistics.value_bytes += int((ends - starts)[starts != NO_VALUE].sum())

    def take(self, chunk: EventChunk) -> None:
        """The events of those."""
        for group in chunk.groups:
            kind, states, state_column = _KINDS[group.api_key]
            numbers = np.bincount(group.columns[state_column].astype(np.int64), minlength=len(states)).tolist()
            times = group.columns["EventTimestampMs"]
            names = {state.name: number for state, number in zip(states, numbers, strict=True) if number}
            self._note(kind, names, (int(times.min()), int(times.max())))
        for _, record in chunk.records:
            event = record.event
            times_of_one = event.event_timestamp_ms, event.event_timestamp_ms
            self._note(type(event), {event.state.name: 1}, times_of_one)

    def statistics(self, live_segments: int, live_events: int) -> EventStatistics:
        """The counts of all; by what replay leaves of the partition's segments, and how many events those have had."""
        undecodable = self._statistics.events - self._decoded - self.tombstones
        dead = self._of_segments - live_events
        return replace(self._statistics, undecodable=undecodable, live_segments=live_segments, dead_events=dead)

    def _note(self, kind: type[MetadataEvent], states: dict[str, int], times: tuple[int, int]) -> None:
        count, statistics = sum(states.values()), self._statistics
        self._decoded += count
        if kind in (RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate):
            self._of_segments += count
        statistics.events_by_type[kind.__name__] += count
        statistics.events_by_state.update(states)
        first, last = statistics.first_event_timestamp_ms, statistics.last_event_timestamp_ms
        statistics.first_event_timestamp_ms = times[0] if first is None else min(first, times[0])
        statistics.last_event_timestamp_ms = times[1] if last is None else max(last, times[1])


class _Tally(EventTally):
    """Keeps the events besides, to replay them."""

    def __init__(self, *, is_described: bool) -> None:
        super().__init__()
        self.events = SegmentEvents(is_described)

    def take(self, chunk: EventChunk) -> None:
        super().take(chunk)
        self.events.take(chunk)

    def closed(self) -> tuple[EventStatistics, ReplayedMetadata]:
        """The counts of all, and what replay leaves."""
        metadata = ReplayedMetadata(self.events)
        return self.statistics(len(metadata.rows), int(metadata.rows.events.sum(dtype=np.int64))), metadata

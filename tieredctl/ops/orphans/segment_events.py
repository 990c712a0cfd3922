"""Events about segments as columns, from any number of metadata partitions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA
from tieredctl.formats.windows import Ints
from tieredctl.kafka.source import RecordChunk
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.event_buckets import EventBuckets
from tieredctl.ops.orphans.event_columns import EventColumns


@dataclass(slots=True)
class SegmentEvents:
    """Takes a stream's chunks; keeps what decides whose an object is."""

    partitions: dict[TopicIdPartition, int] = field(default_factory=dict)
    """Every user partition that an event named, numbered."""
    partition_deletes: dict[int, RemotePartitionDeleteState] = field(default_factory=dict)
    first_events_ms: dict[str, int] = field(default_factory=dict)
    """Each topic id that an event named, with the time of its earliest record."""
    last_timestamp_ms: int = -1
    """Of the last record that was read, of whatever partition."""
    buckets: EventBuckets = field(default_factory=EventBuckets)
    """All events about segments, those of a segment together, in the order in which they were read."""

    def read(self, stream: EventStream) -> None:
        """All of a stream."""
        for metadata_partition, chunk in stream.chunks():
            if len(chunk):
                self._read_chunk(stream, metadata_partition, chunk)

    def _read_chunk(self, stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> None:
        offsets, timestamps, starts, ends = (
            np.asarray(column, np.int64) for column in (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
        )
        self.last_timestamp_ms = max(self.last_timestamp_ms, int(timestamps.max()))
        events = EventColumns.blank(metadata_partition, offsets)
        groups, left = stream.decode_columns(metadata_partition, np.frombuffer(chunk.buffer, np.uint8), starts, ends)
        for group in groups:
            self._add_group(events, group)
            self._date_group(group, timestamps[group.rows])
        for row in left.tolist():
            for record in stream.decode(metadata_partition, chunk, [row]):
                self._add_record(events, row, record)
        self.buckets.add(events.filled())

    def _add_group(self, events: EventColumns, group: EventGroup) -> None:
        numbers = np.array([self._number(partition) for partition in group.partitions], np.int32)
        owners, columns = numbers[group.partition_index], group.columns
        if group.api_key == PARTITION_DELETE:
            states = columns["RemotePartitionDeleteState"].tolist()
            for owner, state in zip(owners.tolist(), states, strict=True):
                self.partition_deletes[owner] = RemotePartitionDeleteState(state)
            return
        segment_ids, states = columns["RemoteLogSegmentId.Id"], columns["RemoteLogSegmentState"]
        events.put(group.rows, segment_ids, owners, states)
        if group.api_key == SEGMENT_METADATA:
            events.put_start(group.rows, columns["StartOffset"], columns["EndOffset"])

    def _add_record(self, events: EventColumns, row: int, record: EventRecord) -> None:
        event = record.event
        if isinstance(event, RemoteLogSegmentMetadataSnapshot):
            return  # it names no partition, and no broker puts it into the topic
        self._date(event.topic_id_partition.topic_id, record.timestamp_ms)
        owner = np.array([self._number(event.topic_id_partition)], np.int32)
        if isinstance(event, RemotePartitionDeleteMetadata):
            self.partition_deletes[int(owner[0])] = event.state
            return
        rows, segment_id = np.array([row]), np.frombuffer(uuid_bytes(event.segment_id), "V16")
        events.put(rows, segment_id, owner, np.array([event.state], np.int8))
        if isinstance(event, RemoteLogSegmentMetadata):
            events.put_start(rows, np.array([event.start_offset]), np.array([event.end_offset]))

    def _date_group(self, group: EventGroup, timestamps: Ints) -> None:
        earliest = np.full(len(group.partitions), np.iinfo(np.int64).max)
        np.minimum.at(earliest, group.partition_index, timestamps)
        for partition, timestamp_ms in zip(group.partitions, earliest.tolist(), strict=True):
            self._date(partition.topic_id, timestamp_ms)

    def _date(self, topic_id: str, timestamp_ms: int) -> None:
        self.first_events_ms[topic_id] = min(timestamp_ms, self.first_events_ms.get(topic_id, timestamp_ms))

    def _number(self, partition: TopicIdPartition) -> int:
        return self.partitions.setdefault(partition, len(self.partitions))

"""Events about segments as columns, from any number of metadata partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.metadata_columns import EventGroup, decode_columns
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA
from tieredctl.formats.windows import Ints
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.ops.event_stream import EventStream

NO_OFFSET = -1

EVENT_DTYPE = np.dtype(
    [
        ("segmentId", "V16"),
        ("partition", np.int32),
        ("starts", np.bool_),
        ("state", np.int8),
        ("startOffset", np.int64),
        ("endOffset", np.int64),
        ("metadataPartition", np.int32),
        ("metadataOffset", np.int64),
    ]
)
"""An event about a segment. `partition` is a row of `SegmentEvents.partitions`; `starts` says that it is the event that
a copy begins with, which alone has offsets (inclusive, else NO_OFFSET)."""


@dataclass(slots=True)
class SegmentEvents:
    """Takes a stream's chunks; keeps what decides whose an object is."""

    partitions: dict[TopicIdPartition, int] = field(default_factory=dict)
    """Every user partition that an event named, numbered."""
    partition_deletes: dict[int, RemotePartitionDeleteState] = field(default_factory=dict)
    last_timestamp_ms: int = -1
    """Of the last record that was read, of whatever partition."""
    _parts: list[NDArray[Any]] = field(default_factory=list)

    def read(self, stream: EventStream) -> None:
        """All of a stream."""
        for metadata_partition, chunk in stream.chunks():
            if not len(chunk):
                continue
            offsets, timestamps, starts, ends = (
                np.asarray(column, np.int64) for column in (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
            )
            self.last_timestamp_ms = max(self.last_timestamp_ms, int(timestamps.max()))
            groups, left = decode_columns(np.frombuffer(chunk.buffer, np.uint8), starts, ends)
            for group in groups:
                self._add_group(group, metadata_partition, offsets[group.rows])
            for record in stream.decode(metadata_partition, chunk, left.tolist()):
                self._add_record(record)

    def table(self) -> NDArray[Any]:
        """All events, in the order of each metadata partition."""
        events = np.concatenate(self._parts) if self._parts else np.zeros(0, EVENT_DTYPE)
        return events[np.lexsort((events["metadataOffset"], events["metadataPartition"]))]

    def _add_group(self, group: EventGroup, metadata_partition: int, offsets: Ints) -> None:
        numbers = np.array([self._number(partition) for partition in group.partitions], np.int32)
        owners, columns = numbers[group.partition_index], group.columns
        if group.api_key == PARTITION_DELETE:
            states = columns["RemotePartitionDeleteState"].tolist()
            for owner, state in zip(owners.tolist(), states, strict=True):
                self.partition_deletes[owner] = RemotePartitionDeleteState(state)
            return
        events = np.empty(len(group.rows), EVENT_DTYPE)
        events["segmentId"] = columns["RemoteLogSegmentId.Id"]
        events["partition"] = owners
        events["starts"] = starts = group.api_key == SEGMENT_METADATA
        events["state"] = columns["RemoteLogSegmentState"]
        events["startOffset"] = columns["StartOffset"] if starts else NO_OFFSET
        events["endOffset"] = columns["EndOffset"] if starts else NO_OFFSET
        events["metadataPartition"] = metadata_partition
        events["metadataOffset"] = offsets
        self._parts.append(events)

    def _add_record(self, record: EventRecord) -> None:
        event = record.event
        if isinstance(event, RemotePartitionDeleteMetadata):
            self.partition_deletes[self._number(event.topic_id_partition)] = event.state
        elif isinstance(event, RemoteLogSegmentMetadata):
            self._add_row(record, event, True, event.start_offset, event.end_offset)
        elif isinstance(event, RemoteLogSegmentMetadataUpdate):
            self._add_row(record, event, False, NO_OFFSET, NO_OFFSET)

    def _add_row(
        self,
        record: EventRecord,
        event: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate,
        starts: bool,
        start_offset: int,
        end_offset: int,
    ) -> None:
        identity = (uuid_bytes(event.segment_id), self._number(event.topic_id_partition))
        row = (
            *identity,
            starts,
            event.state,
            start_offset,
            end_offset,
            record.metadata_partition,
            record.metadata_offset,
        )
        self._parts.append(np.array([row], EVENT_DTYPE))

    def _number(self, partition: TopicIdPartition) -> int:
        return self.partitions.setdefault(partition, len(self.partitions))

"""Events about segments and about the removal of partitions as columns, from any number of metadata partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA
from tieredctl.formats.uuid_columns import UuidColumns, joined_uuids
from tieredctl.formats.windows import Bytes, Ints
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.rlmm.event_columns import EventBuckets, EventColumns
from tieredctl.rlmm.event_contents import EventContents


class EventChunk(NamedTuple):
    """Consecutive records of a metadata partition, decoded."""

    metadata_partition: int
    offsets: Ints
    timestamps: Ints
    """The timestamps of the records, in milliseconds."""
    data: Bytes
    """What the spans of `groups` refer to."""
    groups: Sequence[EventGroup]
    records: Sequence[tuple[int, EventRecord]]
    """The events that are in no group, by the number of their record."""


class PartitionDelete(NamedTuple):
    """An event about the removal of a partition, which is a row of `SegmentEvents.partitions`."""

    partition: int
    metadata_partition: int
    metadata_offset: int
    state: RemotePartitionDeleteState


@dataclass(slots=True)
class SegmentEvents:
    """Takes chunks of events; keeps what the state of segments depends on and, if described, all their content."""

    is_described: bool = False
    selects: Callable[[TopicIdPartition], bool] | None = None
    """Which user partitions' events are kept; None for all."""
    partitions: dict[TopicIdPartition, int] = field(default_factory=dict)
    """Every user partition with an event that was kept, numbered."""
    partition_deletes: list[PartitionDelete] = field(default_factory=list)
    misplaced: list[EventRecord] = field(default_factory=list)
    """Events that do not belong in the topic."""
    first_events_ms: dict[str, int] = field(default_factory=dict)
    """Each topic id that an event named, with the time of its earliest record."""
    first_records_ms: dict[int, int] = field(default_factory=dict)
    """Each metadata partition with records, with the time of the first that was read, in its order."""
    last_timestamp_ms: int = -1
    """The time of the last record that was read, of any partition."""
    buckets: EventBuckets = field(default_factory=EventBuckets)
    """All events about segments, those of a segment together, in the order in which they were read."""
    forgotten: dict[tuple[int, bytes], None] = field(default_factory=dict)
    """The deleted segments whose events were dropped last, by the number of their partition and their id."""
    contents: EventContents = field(init=False)

    def __post_init__(self) -> None:
        self.contents = EventContents.empty(is_described=self.is_described)

    @property
    def count(self) -> int:
        """How many events are kept."""
        return len(self.buckets) + len(self.partition_deletes) + len(self.misplaced)

    def first_offset(self, partition: TopicIdPartition, metadata_partition: int) -> int:
        """The first offset of a user partition's events in a metadata partition; there must be one."""
        number = self.partitions[partition]
        events = self.buckets.of_partition(number)
        offsets: list[int] = events.metadata_offsets[events.metadata_partitions == metadata_partition].tolist()
        deletes = (one for one in self.partition_deletes if one[:2] == (number, metadata_partition))
        return min([*offsets, *(one.metadata_offset for one in deletes)])

    def count_between(self, partition: TopicIdPartition, metadata_partition: int, after: int, last: int) -> int:
        """How many events of a user partition one metadata partition has above an offset, up to another."""
        number = self.partitions[partition]
        events = self.buckets.of_partition(number)
        offsets = events.metadata_offsets
        is_between = (events.metadata_partitions == metadata_partition) & (offsets > after) & (offsets <= last)
        deletes = (one for one in self.partition_deletes if one[:2] == (number, metadata_partition))
        return int(is_between.sum()) + sum(after < one.metadata_offset <= last for one in deletes)

    def as_of(self, last_offsets: Mapping[tuple[TopicIdPartition, int], int]) -> SegmentEvents:
        """The events up to an offset (inclusive), by user partition and metadata partition; none where no offset is
        given. Shares what they say; takes no more."""
        earlier = SegmentEvents(self.is_described, self.selects, self.partitions)
        earlier.contents = self.contents
        for (partition, metadata_partition), last_offset in last_offsets.items():
            number = self.partitions.get(partition)
            if number is None:
                continue
            events = self.buckets.of_partition(number)
            is_here = (events.metadata_partitions == metadata_partition) & (events.metadata_offsets <= last_offset)
            earlier.buckets.add(events.at(np.flatnonzero(is_here)))
            earlier.partition_deletes += [
                one
                for one in self.partition_deletes
                if one[:2] == (number, metadata_partition) and one.metadata_offset <= last_offset
            ]
        return earlier

    def only(self, events: EventColumns) -> SegmentEvents:
        """Keeps only these of the events about segments, and what they say; the result takes more, instead of this."""
        chosen = replace(self, buckets=EventBuckets())
        chosen.contents, contents = self.contents.only(events.starts, events.contents)
        chosen.buckets.add(replace(events, contents=contents))
        return chosen

    def named_in(
        self, states: Collection[RemoteLogSegmentState], partition: TopicIdPartition | None = None
    ) -> UuidColumns:
        """The segments that an update of any partition, or of this one, puts into one of these states, legal or
        not."""
        wanted = list(states)
        among = self.buckets if partition is None else (self.buckets.of_partition(self.partitions[partition]),)
        ids = [
            events.segment_ids.at(np.flatnonzero(~events.starts & np.isin(events.states, wanted))) for events in among
        ]
        return joined_uuids(ids)

    def take(self, chunk: EventChunk) -> None:
        """The next events of a metadata partition."""
        if not len(chunk.offsets):
            return
        self.first_records_ms.setdefault(chunk.metadata_partition, int(chunk.timestamps[0]))
        self.last_timestamp_ms = max(self.last_timestamp_ms, int(chunk.timestamps.max()))
        events = EventColumns.blank(chunk.metadata_partition, chunk.offsets)
        for group in chunk.groups:
            self._date_group(group, chunk.timestamps[group.rows])
            if (selected := self._selected(group)) is not None:
                self._add_group(chunk, events, selected)
        for row, record in chunk.records:
            self._add_record(events, row, record)
        self.buckets.add(events.filled())

    def _selected(self, group: EventGroup) -> EventGroup | None:
        if self.selects is None:
            return group
        wanted = np.array([self.selects(partition) for partition in group.partitions], np.bool_)
        if wanted.all():
            return group
        return group.where(wanted[group.partition_index]) if wanted.any() else None

    def _add_group(self, chunk: EventChunk, events: EventColumns, group: EventGroup) -> None:
        used = np.zeros(len(group.partitions), np.bool_)
        used[group.partition_index] = True
        numbers = np.array(
            [self._number(one) if is_used else 0 for one, is_used in zip(group.partitions, used.tolist(), strict=True)],
            np.int32,
        )
        owners, columns = numbers[group.partition_index], group.columns
        if group.api_key == PARTITION_DELETE:
            states, offsets = columns["RemotePartitionDeleteState"].tolist(), chunk.offsets[group.rows].tolist()
            for owner, offset, state in zip(owners.tolist(), offsets, states, strict=True):
                self._add_delete(owner, chunk.metadata_partition, offset, RemotePartitionDeleteState(state))
            return
        starts = group.api_key == SEGMENT_METADATA
        contents = (self.contents.starts if starts else self.contents.updates).add(chunk.data, group)
        segment_ids, states = columns["RemoteLogSegmentId.Id"], columns["RemoteLogSegmentState"]
        events.put(group.rows, segment_ids, owners, states, contents, starts=starts)

    def _add_record(self, events: EventColumns, row: int, record: EventRecord) -> None:
        event = record.event
        if isinstance(event, RemoteLogSegmentMetadataSnapshot):
            self.misplaced.append(record)
            return
        self._date(event.topic_id_partition.topic_id, record.timestamp_ms)
        if self.selects is not None and not self.selects(event.topic_id_partition):
            return
        owner = self._number(event.topic_id_partition)
        if isinstance(event, RemotePartitionDeleteMetadata):
            self._add_delete(owner, record.metadata_partition, record.metadata_offset, event.state)
            return
        if isinstance(event, RemoteLogSegmentMetadata):
            contents = self.contents.starts.add_one(event)
        else:
            contents = self.contents.updates.add_one(event)
        segment_id = np.frombuffer(uuid_bytes(event.segment_id), "V16")
        owners, states = np.array([owner], np.int32), np.array([event.state], np.int8)
        starts = isinstance(event, RemoteLogSegmentMetadata)
        events.put(np.array([row]), segment_id, owners, states, contents, starts=starts)

    def _add_delete(self, owner: int, partition: int, offset: int, state: RemotePartitionDeleteState) -> None:
        self.partition_deletes.append(PartitionDelete(owner, partition, offset, state))

    def _date_group(self, group: EventGroup, timestamps: Ints) -> None:
        earliest = np.full(len(group.partitions), np.iinfo(np.int64).max)
        np.minimum.at(earliest, group.partition_index, timestamps)
        for partition, timestamp_ms in zip(group.partitions, earliest.tolist(), strict=True):
            self._date(partition.topic_id, timestamp_ms)

    def _date(self, topic_id: str, timestamp_ms: int) -> None:
        self.first_events_ms[topic_id] = min(timestamp_ms, self.first_events_ms.get(topic_id, timestamp_ms))

    def _number(self, partition: TopicIdPartition) -> int:
        return self.partitions.setdefault(partition, len(self.partitions))

"""Events of `__remote_wal_log_metadata` as columns, from any number of its partitions.

Events about segments are kept as KIP-405's are, so that one replay serves both; where they say that segments are is
kept beside them. An event of a leader of the past changes nothing: KIP-1176, "Overall architecture", "the follower uses
the leader epoch to filter out any messages sent by the old leader".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.columns import NULL
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.formats.uuid_columns import uuid_columns
from tieredctl.formats.windows import Bytes, Flags, Ints
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.rlmm.event_columns import EventBuckets, EventColumns
from tieredctl.rlmm.event_contents import Column, Rows, SomeBytes
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents
from tieredctl_proposals.formats.wal_columns import CombinedGroup, decode_wal_columns
from tieredctl_proposals.formats.wal_records import decode_wal_event
from tieredctl_proposals.formats.wal_schemas import WAL_COMBINED, WAL_SEGMENT
from tieredctl_proposals.model.wal_events import (
    NO_LEADER,
    CombinedEvent,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalLogSegmentMetadata,
    WalEvent,
    WalSegmentEvent,
)
from tieredctl_proposals.wal.placements import Entries, Placements

_EPOCHS_OF_A_PARTITION = 1 << 33
"""More than there are leader epochs, NO_LEADER included."""
_MOST_NAMED = 10_000
"""Records that cannot be decoded and are kept, each with its place: a batch may have millions."""
_ALL_OBJECTS = 0
"""Combined objects belong to no partition: all count as of this one."""


class WalChunk(NamedTuple):
    """Consecutive records of a metadata partition; the value of record i is `data[starts[i]:ends[i]]`, none where
    starts[i] is -1. Timestamps are the records' own, in milliseconds."""

    metadata_partition: int
    offsets: Ints
    timestamps: Ints
    data: Bytes
    starts: Ints
    ends: Ints


class StaleEvent(NamedTuple):
    """An event of a leader after one of a later leader of its partition."""

    metadata_partition: int
    metadata_offset: int
    partition: TopicIdPartition
    segment_id: str
    leader_epoch: int


class UndecodableRecord(NamedTuple):
    """A record without an event, and why."""

    metadata_partition: int
    metadata_offset: int
    reason: str


@dataclass(slots=True)
class CombinedContents:
    """The content of events about combined objects, a row for each."""

    broker_ids: Column = field(default_factory=lambda: Column(np.int32))
    event_timestamps: Column = field(default_factory=lambda: Column(np.int64))
    """In milliseconds since the epoch."""
    customs: SomeBytes = field(default_factory=SomeBytes)
    entries: Entries = field(default_factory=Entries)

    def __len__(self) -> int:
        return len(self.broker_ids.values)


@dataclass(slots=True)
class WalEvents:
    """Takes chunks of records, and keeps what they say."""

    partitions: dict[TopicIdPartition, int] = field(default_factory=dict)
    """Every user partition that an event named, numbered."""
    segments: SegmentEvents = field(init=False)
    """The events about segments, without those of leaders of the past."""
    started: Placements = field(default_factory=Placements)
    """Where those that begin uploads say that segments are: a row for each of `segments.contents.starts`."""
    updated: Placements = field(default_factory=Placements)
    """The same of the others: a row for each of `segments.contents.updates`."""
    combined: EventBuckets = field(default_factory=EventBuckets)
    """The events about combined objects, whose contents are rows of `combined_contents`."""
    combined_contents: CombinedContents = field(default_factory=CombinedContents)
    stale: list[StaleEvent] = field(default_factory=list)
    undecodable: list[UndecodableRecord] = field(default_factory=list)
    """The first of them."""
    undecodable_count: int = 0
    """How many there are."""
    _highest_epochs: Column = field(default_factory=lambda: Column(np.int64))
    """The highest epoch of each partition's leaders so far."""

    def __post_init__(self) -> None:
        self.segments = SegmentEvents(is_described=True, partitions=self.partitions)

    def take(self, chunk: WalChunk) -> None:
        """The next records of a metadata partition."""
        if not len(chunk.offsets):
            return
        decoded = decode_wal_columns(chunk.data, chunk.starts, chunk.ends)
        singles = list(self._one_by_one(chunk, decoded.left))
        of_segments = [(row, event) for row, event in singles if isinstance(event, WalSegmentEvent)]
        stale = self._stale(chunk, decoded.segments, of_segments)
        self._take_segments(chunk, decoded.segments, of_segments, stale)
        events = EventColumns.blank(chunk.metadata_partition, chunk.offsets)
        for group in decoded.combined:
            self._add_combined(events, chunk.data, group)
        for row, event in singles:
            if isinstance(event, CombinedEvent):
                self._add_one_combined(events, row, event)
        self.combined.add(events.filled())

    def highest_epoch(self, partition: TopicIdPartition) -> int:
        """The highest epoch of all leaders that wrote an event about a partition: no event of an earlier one is taken;
        else NO_LEADER."""
        number = self.partitions.get(partition)
        highest = self._highest_epochs.values
        return NO_LEADER if number is None or number >= len(highest) else int(highest[number])

    def _one_by_one(self, chunk: WalChunk, rows: Ints) -> Iterator[tuple[int, WalEvent]]:
        for row in rows[chunk.starts[rows] != NULL].tolist():
            try:
                yield row, decode_wal_event(chunk.data[chunk.starts[row] : chunk.ends[row]].tobytes())
            except DecodeError as reason:
                self._note_undecodable(chunk.metadata_partition, int(chunk.offsets[row]), reason)

    def _note_undecodable(self, metadata_partition: int, offset: int, reason: DecodeError) -> None:
        """Keeps no error itself: its traceback would keep the chunk."""
        self.undecodable_count += 1
        if len(self.undecodable) < _MOST_NAMED:
            self.undecodable.append(UndecodableRecord(metadata_partition, offset, reason.message))

    def _stale(
        self, chunk: WalChunk, groups: Sequence[EventGroup], singles: Sequence[tuple[int, WalSegmentEvent]]
    ) -> Flags:
        """Flags the records of leaders of the past."""
        single_rows = np.array([row for row, _ in singles], np.int64)
        single_owners = self._numbers([event.topic_id_partition for _, event in singles])
        single_epochs = np.array([event.leader_epoch for _, event in singles], np.int64)
        rows = np.concatenate([single_rows, *(group.rows for group in groups)])
        owners = np.concatenate([single_owners, *(self._owners(group) for group in groups)])
        epochs = np.concatenate([single_epochs, *(group.columns["LeaderEpoch"] for group in groups)])
        epochs = np.maximum(epochs, NO_LEADER)
        unknown = len(self.partitions) - len(self._highest_epochs.values)
        self._highest_epochs.add(np.full(unknown, NO_LEADER))
        highest = self._highest_epochs.values
        order = np.lexsort((rows, owners))
        in_order, of_order = owners[order], epochs[order]
        bases = in_order * _EPOCHS_OF_A_PARTITION
        reached = np.maximum.accumulate(bases + np.maximum(of_order, highest[in_order]) - NO_LEADER)
        is_stale = (of_order != NO_LEADER) & (of_order - NO_LEADER < reached - bases)
        np.maximum.at(highest, owners, epochs)
        stale = np.zeros(len(chunk.offsets), np.bool_)
        stale[rows[order[is_stale]]] = True
        if is_stale.any():
            ids = {row: event.segment_id for row, event in singles}
            for group in groups:
                texts = uuid_columns(group.columns["RemoteLogSegmentId.Id"]).texts()
                ids |= dict(zip(group.rows.tolist(), texts, strict=True))
            names = list(self.partitions)
            for place in order[is_stale].tolist():
                row = int(rows[place])
                identity = names[owners[place]], ids[row], int(epochs[place])
                self.stale.append(StaleEvent(chunk.metadata_partition, int(chunk.offsets[row]), *identity))
        return stale

    def _take_segments(
        self,
        chunk: WalChunk,
        groups: Sequence[EventGroup],
        singles: Sequence[tuple[int, WalSegmentEvent]],
        stale: Flags,
    ) -> None:
        taken = []
        for group in groups:
            one = group.where(~stale[group.rows])
            starts = group.api_key == WAL_SEGMENT
            (self.started if starts else self.updated).add(one.columns)
            taken.append(replace(one, api_key=SEGMENT_METADATA if starts else SEGMENT_METADATA_UPDATE))
        records = []
        for row, event in singles:
            if not stale[row]:
                (self.started if isinstance(event, RemoteWalLogSegmentMetadata) else self.updated).add_one(event)
                place = chunk.metadata_partition, int(chunk.offsets[row]), int(chunk.timestamps[row])
                records.append((row, EventRecord(*place, as_kip_405(event))))
        self.segments.take(
            EventChunk(chunk.metadata_partition, chunk.offsets, chunk.timestamps, chunk.data, taken, records)
        )

    def _add_combined(self, events: EventColumns, data: Bytes, group: CombinedGroup) -> None:
        contents, columns = self.combined_contents, group.columns
        first, count = len(contents), len(group.rows)
        contents.broker_ids.add(columns["BrokerId"])
        contents.event_timestamps.add(columns["EventTimestampMs"])
        contents.customs.add(first, data, columns["CustomMetadata"])
        owners = self._numbers(group.partitions)[group.partition_index]
        contents.entries.add(np.diff(group.entries.bounds), owners, group.entries.elements)
        self._put(
            events,
            group.rows,
            columns["CombinedSegmentId"],
            columns["RemoteLogSegmentState"],
            np.arange(first, first + count),
            starts=group.api_key == WAL_COMBINED,
        )

    def _add_one_combined(self, events: EventColumns, row: int, event: CombinedEvent) -> None:
        contents = self.combined_contents
        first = len(contents)
        contents.broker_ids.add([event.broker_id])
        contents.event_timestamps.add([event.event_timestamp_ms])
        contents.customs.add_one(first, event.custom_metadata)
        owners = self._numbers([entry.topic_id_partition for entry in event.entries])
        contents.entries.add_one(owners.tolist(), event.entries)
        self._put(
            events,
            np.array([row]),
            np.frombuffer(uuid_bytes(event.combined_segment_id), "V16"),
            np.array([event.state], np.int8),
            np.array([first]),
            starts=isinstance(event, RemoteWalCombinedLogSegmentMetadata),
        )

    def _put(self, events: EventColumns, rows: Ints, ids: Rows, states: Rows, contents: Rows, *, starts: bool) -> None:
        events.put(rows, ids, np.full(len(rows), _ALL_OBJECTS), states, contents, starts=starts)

    def _owners(self, group: EventGroup) -> Ints:
        return self._numbers(group.partitions)[group.partition_index]

    def _numbers(self, partitions: Sequence[TopicIdPartition]) -> Ints:
        return np.array([self.partitions.setdefault(one, len(self.partitions)) for one in partitions], np.int64)


def as_kip_405(event: WalSegmentEvent) -> RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate:
    """What an event says of its segment, apart from where it is: as an event of KIP-405."""
    common: dict[str, Any] = {
        "topic_id_partition": event.topic_id_partition,
        "segment_id": event.segment_id,
        "author": event.broker_id,
        "event_timestamp_ms": event.event_timestamp_ms,
        "state": event.state,
        "custom_metadata": event.custom_metadata,
    }
    if not isinstance(event, RemoteWalLogSegmentMetadata):
        return RemoteLogSegmentMetadataUpdate(**common)
    return RemoteLogSegmentMetadata(
        start_offset=event.start_offset,
        end_offset=event.end_offset,
        max_timestamp_ms=event.max_timestamp_ms,
        segment_leader_epochs=event.segment_leader_epochs,
        segment_size_in_bytes=event.segment_size_in_bytes,
        **common,
    )

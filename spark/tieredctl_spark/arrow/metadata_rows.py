"""What a task makes of records of `__remote_log_metadata`: Arrow out, in one pass over what it reads.

A task that reads whole metadata partitions replays their events at once. Of one that is divided among tasks, each gives
the events, made narrow, and `replayed_states` takes them where a user partition's are together. Both tell what is true
of all that they read, and what was wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import number_array, text_array
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.formats.uuid_columns import uuid_columns
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemotePartitionDeleteMetadata,
)
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_reading import event_chunk
from tieredctl.ops.orphans.segment_states import states_in_partitions
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.state_blocks import BLOCK_SCHEMA, StateBlock
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA, PARTITION_FIELDS
from tieredctl_spark.finding_rows import FINDING_TYPE
from tieredctl_spark.metadata_shares import FINDING, OFFSET, PARTITION, Share, finding_columns, share_chunks

ABOUT = "about"
ABOUT_TYPE = pa.struct(
    {
        "home": pa.int32(),
        "records": pa.int64(),
        "firstMs": pa.int64(),
        "lastMs": pa.int64(),
        "firstOffset": pa.int64(),
        "lastOffset": pa.int64(),
        "isRemoved": pa.bool_(),
    }
)
"""Of some records. In a row with a user partition: how many events are about it, the earliest time of their records,
and whether one tells of its removal. In one without: how many records of a metadata partition there are, the time of
the first by its offset, and the last time and offset. `home` is the number of the task that replayed them, DIVIDED
where none did. Times in ms, offsets inclusive."""
DIVIDED = -1
_MORE = ((ABOUT, ABOUT_TYPE), (FINDING, FINDING_TYPE))
TOLD_SCHEMA = pa.schema([*(EVENT_SCHEMA.field(name) for name in (*PARTITION_FIELDS, PARTITION, OFFSET)), *_MORE])
"""What is told of some records, or a finding."""
SEGMENT_ROW_SCHEMA = pa.schema([*BLOCK_SCHEMA, *TOLD_SCHEMA])
"""A row of TOLD_SCHEMA, or a block of segments, by BLOCK_SCHEMA."""
EVENT_ROW_SCHEMA = pa.schema([*EVENT_SCHEMA, *_MORE])
"""A row of TOLD_SCHEMA, or an event, by EVENT_SCHEMA."""

_KINDS = {RemoteLogSegmentMetadata: SEGMENT_METADATA, RemotePartitionDeleteMetadata: PARTITION_DELETE}


def state_rows(place: MetadataPlace, shares: Iterable[Share], home: int) -> Iterator[pa.Table]:
    """Whole metadata partitions by SEGMENT_ROW_SCHEMA. Raises TieredctlError as `share_chunks` does."""
    events, told, findings = SegmentEvents(), _Told(home), list[Finding]()
    for chunk in _decoded(place, shares, findings):
        told.take(chunk)
        events.take(chunk)
    yield pa.Table.from_pylist([*told.rows(), *map(finding_columns, findings)], SEGMENT_ROW_SCHEMA)
    if events.partitions:
        yield _widened(StateBlock.of(states_in_partitions(events)).packed(), SEGMENT_ROW_SCHEMA)


def event_rows(place: MetadataPlace, shares: Iterable[Share]) -> Iterator[pa.Table]:
    """Any shares by EVENT_ROW_SCHEMA. Raises as `state_rows` does."""
    told, findings = _Told(DIVIDED), list[Finding]()
    for chunk in _decoded(place, shares, findings):
        told.take(chunk)
        yield _widened(event_table(chunk), EVENT_ROW_SCHEMA)
    yield pa.Table.from_pylist([*told.rows(), *map(finding_columns, findings)], EVENT_ROW_SCHEMA)


def event_table(chunk: EventChunk) -> pa.Table:
    """The events of a chunk by EVENT_SCHEMA, in no order."""
    others = [_event_row(record) for _, record in chunk.records if _partition_of(record) is not None]
    groups = [_group_table(chunk, group) for group in chunk.groups]
    return pa.concat_tables([*groups, pa.Table.from_pylist(others, EVENT_SCHEMA)])


def _decoded(place: MetadataPlace, shares: Iterable[Share], findings: list[Finding]) -> Iterator[EventChunk]:
    return (event_chunk(*found) for share in shares for found in share_chunks(place, share, findings))


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.table([*rows.columns, *(pa.nulls(len(rows), one.type) for one in [*schema][rows.num_columns :])], schema)


@dataclass(slots=True)
class _OfPartition:
    records: int = 0
    first_ms: int = np.iinfo(np.int64).max
    is_removed: bool = False

    def add(self, records: int, first_ms: int, *, is_removed: bool) -> None:
        self.records += records
        self.first_ms = min(self.first_ms, first_ms)
        self.is_removed |= is_removed


@dataclass(slots=True)
class _OfLog:
    first_ms: int
    first_offset: int
    records: int = 0
    last_ms: int = np.iinfo(np.int64).min
    last_offset: int = -1


@dataclass(slots=True)
class _Told:
    """Sums up the records that a task reads."""

    home: int
    _partitions: dict[tuple[TopicIdPartition, int], _OfPartition] = field(default_factory=dict)
    _logs: dict[int, _OfLog] = field(default_factory=dict)

    def take(self, chunk: EventChunk) -> None:
        number = chunk.metadata_partition
        log = self._logs.setdefault(number, _OfLog(int(chunk.timestamps[0]), int(chunk.offsets[0])))
        log.records += len(chunk.offsets)
        log.last_ms = max(log.last_ms, int(chunk.timestamps.max()))
        log.last_offset = max(log.last_offset, int(chunk.offsets.max()))
        for group in chunk.groups:
            counts = np.bincount(group.partition_index, minlength=len(group.partitions))
            firsts_ms = np.full(len(counts), np.iinfo(np.int64).max)
            np.minimum.at(firsts_ms, group.partition_index, chunk.timestamps[group.rows])
            is_removed = group.api_key == PARTITION_DELETE
            for partition, count, first_ms in zip(group.partitions, counts.tolist(), firsts_ms.tolist(), strict=True):
                if count:
                    self._of(partition, number).add(count, first_ms, is_removed=is_removed)
        for _, record in chunk.records:
            if (about := _partition_of(record)) is not None:
                is_removed = isinstance(record.event, RemotePartitionDeleteMetadata)
                self._of(about, number).add(1, record.timestamp_ms, is_removed=is_removed)

    def rows(self) -> Iterator[dict[str, Any]]:
        for number, log in self._logs.items():
            about = {"records": log.records, "firstMs": log.first_ms, "lastMs": log.last_ms}
            offsets = {"firstOffset": log.first_offset, "lastOffset": log.last_offset}
            yield {PARTITION: number, ABOUT: {"home": self.home, **about, **offsets}}
        for (partition, number), one in self._partitions.items():
            about = {"home": self.home, "records": one.records, "firstMs": one.first_ms, "isRemoved": one.is_removed}
            yield {**_named(partition), PARTITION: number, ABOUT: about}

    def _of(self, partition: TopicIdPartition, number: int) -> _OfPartition:
        return self._partitions.setdefault((partition, number), _OfPartition())


def _partition_of(record: EventRecord) -> TopicIdPartition | None:
    """The user partition that an event is about; a snapshot names none."""
    event = record.event
    return None if isinstance(event, RemoteLogSegmentMetadataSnapshot) else event.topic_id_partition


def _named(partition: TopicIdPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "topicId": partition.topic_id, "partition": partition.partition}


def _event_row(record: EventRecord) -> dict[str, Any]:
    event: Any = record.event
    said = {"apiKey": _KINDS.get(type(event), SEGMENT_METADATA_UPDATE), "state": int(event.state)}
    row = {PARTITION: record.metadata_partition, OFFSET: record.metadata_offset, **said}
    row |= _named(event.topic_id_partition)
    if isinstance(event, RemotePartitionDeleteMetadata):
        return row
    row |= {"segmentId": event.segment_id}
    if isinstance(event, RemoteLogSegmentMetadata):
        row |= {"startOffset": event.start_offset, "endOffset": event.end_offset}
        row |= {"eventTimestampMs": event.event_timestamp_ms, "brokerId": event.author}
    return row


def _group_table(chunk: EventChunk, group: EventGroup) -> pa.Table:
    count, columns = len(group.rows), group.columns
    index, names = number_array(group.partition_index), group.partitions
    states = "RemotePartitionDeleteState" if group.api_key == PARTITION_DELETE else "RemoteLogSegmentState"
    found: dict[str, Any] = {
        PARTITION: number_array(np.full(count, chunk.metadata_partition, np.int32)),
        OFFSET: number_array(chunk.offsets[group.rows]),
        "apiKey": number_array(np.full(count, group.api_key, np.int8)),
        "topic": text_array([one.topic for one in names]).take(index),
        "topicId": text_array([one.topic_id for one in names]).take(index),
        "partition": number_array(np.array([one.partition for one in names], np.int32)).take(index),
        "state": number_array(columns[states].astype(np.int8)),
    }
    if group.api_key != PARTITION_DELETE:
        found["segmentId"] = uuid_columns(columns["RemoteLogSegmentId.Id"]).text_array()
    if group.api_key == SEGMENT_METADATA:
        said: Sequence[tuple[str, str]] = (("startOffset", "StartOffset"), ("endOffset", "EndOffset"))
        said = (*said, ("eventTimestampMs", "EventTimestampMs"), ("brokerId", "BrokerId"))
        found |= {name: number_array(columns[path]) for name, path in said}
    absent = {one.name: pa.nulls(count, one.type) for one in EVENT_SCHEMA}
    return pa.table(absent | found, EVENT_SCHEMA)

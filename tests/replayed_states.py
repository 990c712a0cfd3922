"""The states of all segments, by whichever engine, in a form that compares."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa
from tieredctl_spark.arrow.state_columns import numbered_partitions, states_of

from tests.event_histories import partition_of
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadata, RemotePartitionDeleteMetadata
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import SegmentStates, segment_states
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import NO_STATE

States = Mapping[str, tuple[Any, ...]]


def event_row(record: EventRecord) -> Document:
    """An event by EVENT_SCHEMA."""
    event, partition = record.event, partition_of(record.event)
    row: Document = {
        "metadataPartition": record.metadata_partition,
        "metadataOffset": record.metadata_offset,
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "state": int(event.state),
    }
    if isinstance(event, RemotePartitionDeleteMetadata):
        return row | {"apiKey": 2}
    row |= {"apiKey": 1, "segmentId": event.segment_id}
    if isinstance(event, RemoteLogSegmentMetadata):
        row |= {"apiKey": 0, "startOffset": event.start_offset, "endOffset": event.end_offset}
        row |= {"eventTimestampMs": event.event_timestamp_ms, "brokerId": event.author}
    return row


def in_buckets(
    rows: Iterable[Document], schema: pa.Schema, count: int, source: random.Random, *key: str
) -> list[pa.Table]:
    """Rows in any order, those with one key together."""
    shuffled, buckets = list(rows), [list[Document]() for _ in range(count)]
    source.shuffle(shuffled)
    for row in shuffled:
        buckets[crc32(repr([row[name] for name in key]).encode()) % count].append(row)
    return [pa.Table.from_pylist(bucket, schema) for bucket in buckets]


def states_of_stream(stream: EventStream) -> States:
    """By the local engine."""
    events = SegmentEvents()
    read_events(stream, events)
    return _by_id(segment_states(events))


def states_of_rows(segments: pa.Table) -> States:
    """Of rows by STATE_SCHEMA."""
    partitions, _ = numbered_partitions(segments.combine_chunks())
    return _by_id(states_of(segments, {one: number for number, one in enumerate(partitions)}, 0))


def _by_id(states: SegmentStates) -> States:
    columns: Sequence[Sequence[Any]] = (
        states.states.tolist(),
        [states.partitions[owner] for owner in states.owners.tolist()],
        states.metadata_partitions.tolist(),
        states.metadata_offsets.tolist(),
        [states.partition_deletes.get(owner) for owner in states.owners.tolist()],
    )
    # What has no state has no place in a lineage.
    began = (states.states != NO_STATE).tolist()
    lineage = zip(states.start_offsets.tolist(), states.superseded.tolist(), strict=True)
    more = [one if has_state else None for has_state, one in zip(began, lineage, strict=True)]
    return dict(zip(states.ids.to_pylist(), zip(*columns, more, strict=True), strict=True))

"""Reads a stream of metadata into the columns that `rlmm` replays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tieredctl.kafka.source import RecordChunk
from tieredctl.model.events import EventRecord
from tieredctl.model.ids import uuid_bytes
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents

_SEGMENT_ID = "RemoteLogSegmentId.Id"


def read_events(stream: EventStream, events: SegmentEvents) -> None:
    """All of a stream. What cannot be decoded becomes a finding of it."""
    for metadata_partition, chunk in stream.chunks():
        events.take(event_chunk(stream, metadata_partition, chunk))


def events_of_segment(stream: EventStream, segment_id: str) -> Iterator[EventRecord]:
    """The events of one segment, in the order of the topic. Those of others are not decoded."""
    wanted = np.frombuffer(uuid_bytes(segment_id), "V16")
    for metadata_partition, chunk in stream.chunks():
        decoded = event_chunk(stream, metadata_partition, chunk)
        groups = (group for group in decoded.groups if _SEGMENT_ID in group.columns)
        rows = [group.rows[group.columns[_SEGMENT_ID] == wanted] for group in groups]
        named = [record for _, record in decoded.records if getattr(record.event, "segment_id", None) == segment_id]
        if rows:
            named += stream.decode(metadata_partition, chunk, np.concatenate(rows).tolist())
        yield from sorted(named, key=lambda record: record.metadata_offset)


def event_chunk(stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> EventChunk:
    """A chunk of a stream, decoded."""
    offsets, timestamps, starts, ends = (
        np.asarray(column, np.int64) for column in (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
    )
    data = np.frombuffer(chunk.buffer, np.uint8)
    groups, left = stream.decode_columns(metadata_partition, data, starts, ends)
    records = [(row, record) for row in left.tolist() for record in stream.decode(metadata_partition, chunk, [row])]
    return EventChunk(metadata_partition, offsets, timestamps, data, groups, records)

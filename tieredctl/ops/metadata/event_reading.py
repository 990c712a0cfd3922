"""Reads a stream of metadata into the columns that `rlmm` replays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.formats.windows import Flags
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadataSnapshot, RemotePartitionDeleteMetadata
from tieredctl.model.ids import uuid_bytes
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents

_SEGMENT_ID = "RemoteLogSegmentId.Id"


def read_events(stream: EventStream, events: SegmentEvents) -> None:
    """Reads a whole stream. What cannot be decoded becomes a finding of the stream."""
    for chunk in decoded_chunks(stream):
        events.take(chunk)


def decoded_chunks(stream: EventStream) -> Iterator[EventChunk]:
    """A stream's chunks, decoded; what cannot be decoded becomes a finding of the stream."""
    return (event_chunk(stream, metadata_partition, chunk) for metadata_partition, chunk in stream.chunks())


def selected_records(stream: EventStream, selection: Selection) -> Iterator[EventRecord]:
    """The events that a selection means, in the order of the topic, and records that do not belong in it. Events of
    others are not made objects of."""
    for metadata_partition, chunk in stream.chunks():
        decoded = event_chunk(stream, metadata_partition, chunk)
        records = [record for _, record in decoded.records if _is_selected(record, selection)]
        rows = [group.rows[_selected(group, selection)] for group in decoded.groups]
        if rows:
            records += stream.decode(metadata_partition, chunk, np.concatenate(rows).tolist())
        yield from sorted(records, key=lambda record: record.metadata_offset)


def _selected(group: EventGroup, selection: Selection) -> Flags:
    of_partitions = np.array([selection.has(partition) for partition in group.partitions], np.bool_)
    selected: Flags = of_partitions[group.partition_index]
    if not selection.segment_ids:
        return selected
    if _SEGMENT_ID not in group.columns:
        return np.zeros_like(selected)
    wanted = np.frombuffer(b"".join(map(uuid_bytes, selection.segment_ids)), "V16")
    selected &= np.isin(group.columns[_SEGMENT_ID], wanted)
    return selected


def _is_selected(record: EventRecord, selection: Selection) -> bool:
    event = record.event
    if isinstance(event, RemotePartitionDeleteMetadata):
        return not selection.segment_ids and selection.has(event.topic_id_partition)
    if not selection.names_segment(event.segment_id):
        return False
    return isinstance(event, RemoteLogSegmentMetadataSnapshot) or selection.has(event.topic_id_partition)


def event_chunk(stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> EventChunk:
    """A chunk of a stream, decoded."""
    offsets, timestamps, starts, ends = (
        np.asarray(column, np.int64) for column in (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
    )
    data = np.frombuffer(chunk.buffer, np.uint8)
    groups, left = stream.decode_columns(metadata_partition, data, starts, ends)
    records = [(row, record) for row in left.tolist() for record in stream.decode(metadata_partition, chunk, [row])]
    return EventChunk(metadata_partition, offsets, timestamps, data, groups, records)

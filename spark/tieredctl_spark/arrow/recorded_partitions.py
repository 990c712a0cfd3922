"""What the records of some user partitions promise, and whether their segments make logs: Arrow in, Arrow out.

Where all records about a partition are together, buckets of partitions say what one replay of everything does, but for
an id that partitions of several buckets claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import contents, numbers_in
from tieredctl.formats.metadata_columns import decode_columns
from tieredctl.formats.metadata_records import decode_event
from tieredctl.model.events import EventRecord, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.ops.verification.lineage_check import EpochRanges, check_lineage
from tieredctl.ports.layout import Layout
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents
from tieredctl_spark.arrow.instants import INSTANT, milliseconds_of

RECORD_SCHEMA = pa.schema(
    {
        "metadataPartition": pa.int32(),
        "metadataOffset": pa.int64(),
        "timestamp": INSTANT,
        "topicId": pa.string(),
        "partition": pa.int32(),
        "value": pa.binary(),
    }
)
"""A record a row, with its value as it was written, and the user partition that it is about."""
PROMISE_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "segmentId": pa.string(),
        "part": pa.string(),
        "key": pa.string(),
    }
)
"""An object that has to be there, a row: a part of a segment whose copy is finished and that is not being deleted."""
_FINISHED = (RemoteLogSegmentState.COPY_SEGMENT_FINISHED,)


def replayed_records(records: pa.Table) -> ReplayedMetadata:
    """The metadata of some partitions, of all records about them by RECORD_SCHEMA, in any order. Raises DecodeError
    for a value that is not an event."""
    found = SegmentEvents(is_described=True)
    rows = records.sort_by([("metadataPartition", "ascending"), ("metadataOffset", "ascending")]).combine_chunks()
    for number in pc.unique(rows.column("metadataPartition")).to_pylist():
        found.take(_chunk(number, rows.filter(pc.equal(rows.column("metadataPartition"), number)).combine_chunks()))
    return ReplayedMetadata(found)


def _chunk(number: int, rows: pa.Table) -> EventChunk:
    offsets = numbers_in(rows.column("metadataOffset").chunk(0))
    timestamps = numbers_in(milliseconds_of(rows.column("timestamp").chunk(0)))
    values = rows.column("value").chunk(0)
    content, edges = contents(values)
    groups, left = decode_columns(content, edges[:-1], edges[1:])
    others = [
        (row, EventRecord(number, int(offsets[row]), int(timestamps[row]), decode_event(values[row].as_py())))
        for row in left.tolist()
    ]
    return EventChunk(number, offsets, timestamps, content, groups, others)


def promised_objects(records: pa.Table, layout: Layout) -> pa.Table:
    """By PROMISE_SCHEMA, what has to be there of the partitions of some records."""
    metadata = replayed_records(records)
    promises = [
        (partition.topic, partition.topic_id, partition.partition, known.metadata.segment_id, part.value, key)
        for partition, known in metadata.known(metadata.in_states(_FINISHED))
        if partition not in metadata.partition_deletes
        for part, key in layout.promised_objects(known.metadata).items()
    ]
    return pa.Table.from_pylist([dict(zip(PROMISE_SCHEMA.names, one, strict=True)) for one in promises], PROMISE_SCHEMA)


def lineage_findings(records: pa.Table) -> Iterator[Finding]:
    """Gaps and overlaps of the segments of each partition of some records, along the lineage that the segments have
    together. What local logs and objects would tell besides, `verify` does."""
    metadata = replayed_records(records)
    finished = metadata.in_states(_FINISHED)
    owners = metadata.rows.partitions[finished]
    for number, partition in enumerate(metadata.partitions):
        rows = finished[owners == number]
        if len(rows) and partition not in metadata.partition_deletes:
            ranges = EpochRanges.of(metadata, rows)
            deleted = partial(metadata.deleted_offsets, partition)
            yield from check_lineage(partition, ranges, ranges.joined(), None, copied=_unasked, deleted=deleted)


def _unasked() -> None:
    """Only a local log raises that question."""

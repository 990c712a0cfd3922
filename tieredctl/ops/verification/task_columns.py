"""Verification tasks of many segments, made of the listing's columns and the metadata's: no object for a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import (
    bytes_or_null_array,
    flag_array,
    number_array,
    numbers_in,
    same_text_array,
    text_array,
)
from tieredctl.formats.uuid_lookup import NOT_FOUND
from tieredctl.formats.windows import Flags, Ints
from tieredctl.ops.verification.judged_partitions import NO_PART, PARTS
from tieredctl.ops.verification.listed_objects import ListedObjects
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.tasks import OBJECT_TYPE, TASK_SCHEMA, bytes_to_read, requests
from tieredctl.ports.layout import Part
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_PART_NAMES = text_array([part.value for part in PARTS])
_LOG = PARTS.index(Part.LOG)
_MOST_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class TaskColumns:
    """The tasks of segments whose objects were all listed."""

    metadata: ReplayedMetadata
    listed: ListedObjects
    level: Level
    index_interval_bytes: int

    def batches(self, chosen: Flags) -> Iterator[pa.RecordBatch]:
        """Batches by TASK_SCHEMA for the chosen rows of the metadata, in the order of the listing."""
        for objects in self._whole_segments(chosen):
            rows = numbers_in(objects.column("row"))
            begins = np.flatnonzero(np.append([True], rows[1:] != rows[:-1]))
            batch = self._batch(rows[begins].astype(np.int64), np.append(begins, len(rows)), objects)
            for first in range(0, len(batch), _MOST_ROWS):
                yield batch.slice(first, _MOST_ROWS)

    def _whole_segments(self, chosen: Flags) -> Iterator[pa.RecordBatch]:
        """The objects of the chosen segments, so that those of a segment are in one batch."""
        by = "row" if self.listed.are_together else "partition"
        rest: pa.RecordBatch | None = None
        for listed in self.listed.batches():
            some = _chosen(listed, chosen)
            batch = some if rest is None else pa.concat_batches([rest, some])
            if not len(batch):
                continue
            column = numbers_in(batch.column(by))
            end = int(np.flatnonzero(np.append([True], column[1:] != column[:-1]))[-1])
            rest = batch.slice(end)
            if end:
                yield self._by_segment(batch.slice(0, end))
        if rest is not None:
            yield self._by_segment(rest)

    def _by_segment(self, objects: pa.RecordBatch) -> pa.RecordBatch:
        if self.listed.are_together:
            return objects
        return objects.take(number_array(np.argsort(numbers_in(objects.column("row")), kind="stable")))

    def _batch(self, rows: Ints, edges: Ints, objects: pa.RecordBatch) -> pa.RecordBatch:
        metadata, starts = self.metadata, self.metadata.events.contents.starts
        segments = metadata.rows.at(rows)
        epochs = starts.epochs_of(segments.starts)
        names = [metadata.partitions[number] for number in segments.partitions.tolist()]
        epoch_type = TASK_SCHEMA.field("segmentLeaderEpochs").type.value_type
        pairs = pa.StructArray.from_arrays(list(map(number_array, epochs.elements.values())), fields=list(epoch_type))
        log_bytes, other_bytes = _sizes(objects, edges)
        columns = {
            "topic": text_array([one.topic for one in names]),
            "topicId": text_array([one.topic_id for one in names]),
            "partition": number_array(np.array([one.partition for one in names], np.int32)),
            "segmentId": segments.segment_ids.text_array(),
            "startOffset": number_array(metadata.start_offsets(rows)),
            "endOffset": number_array(metadata.end_offsets(rows)),
            "maxTimestampMs": number_array(starts.max_timestamps.values[segments.starts]),
            "segmentLeaderEpochs": _lists(epochs.bounds, pairs),
            "segmentSizeInBytes": number_array(metadata.sizes(rows).astype(np.int32)),
            "txnIdxEmpty": flag_array(starts.txn_idx_empty.values[segments.starts]),
            "customMetadata": bytes_or_null_array(metadata.custom_metadata(rows)),
            "brokerId": number_array(metadata.authors(rows).astype(np.int32)),
            "eventTimestampMs": number_array(metadata.event_timestamps(rows)),
            "objects": _lists(edges, _objects(objects)),
            "level": same_text_array(self.level.value, len(rows)).dictionary_decode(),
            "indexIntervalBytes": number_array(np.full(len(rows), self.index_interval_bytes, np.int32)),
            "bytesToRead": number_array(bytes_to_read(self.level, log_bytes, other_bytes)),
            "requests": number_array(requests(self.level, np.diff(edges)).astype(np.int32)),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=TASK_SCHEMA)


def _chosen(batch: pa.RecordBatch, chosen: Flags) -> pa.RecordBatch:
    rows, parts = numbers_in(batch.column("row")), numbers_in(batch.column("part"))
    taken = np.flatnonzero((rows != NOT_FOUND) & (parts != NO_PART))
    taken = taken[chosen[rows[taken]]]
    plain = batch.set_column(
        batch.schema.get_field_index("storageClass"), "storageClass", batch.column("storageClass").dictionary_decode()
    )
    return plain.take(number_array(taken))


def _objects(objects: pa.RecordBatch) -> pa.StructArray:
    """By OBJECT_TYPE."""
    parts = _PART_NAMES.take(objects.column("part"))
    versions, classes = objects.column("version").cast(pa.string()), objects.column("storageClass")
    columns = [
        parts,
        objects.column("key"),
        objects.column("size"),
        objects.column("lastModifiedMs"),
        _null_where_empty(versions),
        _null_where_empty(classes),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(OBJECT_TYPE))


def _null_where_empty(texts: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)


def _lists(edges: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(number_array(edges.astype(np.int32)), values)


def _sizes(objects: pa.RecordBatch, edges: Ints) -> tuple[Ints, Ints]:
    """Of each segment's log, and of its other objects, in bytes as stored."""
    sizes: NDArray[np.int64] = numbers_in(objects.column("size"))
    logs = np.where(numbers_in(objects.column("part")) == _LOG, sizes, 0)
    log_bytes: Ints = np.add.reduceat(logs, edges[:-1])
    return log_bytes, np.add.reduceat(sizes, edges[:-1]) - log_bytes

"""Verification tasks as a table: which segments to read, from which objects, and what it will cost.

Planning makes batches of it by columns, at any size; an engine takes them in batches, wherever it runs. A row becomes a
`SegmentTask` only where the segment is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

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
from tieredctl.formats.uuid_columns import NOT_FOUND
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_bytes, key_text
from tieredctl.ops.verification.judged_partitions import NO_PART, PARTS
from tieredctl.ops.verification.listed_objects import ListedObjects
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

OBJECT_TYPE = pa.struct(
    {
        "part": pa.string(),
        "key": pa.binary(),
        "size": pa.int64(),
        "lastModifiedMs": pa.int64(),
        "version": pa.string(),
        "storageClass": pa.string(),
    }
)
"""An object of a segment as the store listed it, or described it when asked by name; size in bytes, as stored.
A key is UTF-8, but for names of files that are not. `version` and `storageClass` are null where the listing does not
have them."""

TASK_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "segmentId": pa.string(),
        "startOffset": pa.int64(),
        "endOffset": pa.int64(),
        "maxTimestampMs": pa.int64(),
        "segmentLeaderEpochs": pa.list_(pa.struct({"leaderEpoch": pa.int32(), "offset": pa.int64()})),
        "segmentSizeInBytes": pa.int32(),
        "txnIdxEmpty": pa.bool_(),
        "customMetadata": pa.binary(),
        "brokerId": pa.int32(),
        "eventTimestampMs": pa.int64(),
        "objects": pa.list_(OBJECT_TYPE),
        "level": pa.string(),
        "indexIntervalBytes": pa.int32(),
        "bytesToRead": pa.int64(),
        "requests": pa.int32(),
    }
)
"""A row for each segment in COPY_SEGMENT_FINISHED that is to be read. None is null but `customMetadata`.

The columns up to `eventTimestampMs` are the segment's metadata: offsets are inclusive, times in ms. `objects` are those
of the segment's objects that exist. `bytesToRead` and `requests` are estimates of what the level costs, to cut work
by."""

_HEADERS_LOG_BYTES = 1 << 16
_HEADERS_MORE_REQUESTS = 1
_TASKS_AT_ONCE = 1 << 12
_METADATA_COLUMNS = (
    ("startOffset", "start_offset"),
    ("endOffset", "end_offset"),
    ("maxTimestampMs", "max_timestamp_ms"),
    ("segmentSizeInBytes", "segment_size_in_bytes"),
    ("txnIdxEmpty", "txn_idx_empty"),
    ("customMetadata", "custom_metadata"),
    ("brokerId", "author"),
    ("eventTimestampMs", "event_timestamp_ms"),
)


@dataclass(frozen=True, slots=True)
class TaskTable:
    """Tasks in batches by TASK_SCHEMA, made when they are asked for; going through it gives objects instead."""

    batches: Callable[[], Iterator[pa.RecordBatch]]

    def __iter__(self) -> Iterator[SegmentTask]:
        return chain.from_iterable(map(tasks_in, self.batches()))


def task_batches(tasks: Iterable[SegmentTask]) -> Iterator[pa.RecordBatch]:
    """Any tasks in batches by TASK_SCHEMA; of a table, those that it has."""
    if isinstance(tasks, TaskTable):
        yield from tasks.batches()
        return
    waiting = iter(tasks)
    while some := list(islice(waiting, _TASKS_AT_ONCE)):
        yield task_batch(some)


def task_batch(tasks: Sequence[SegmentTask]) -> pa.RecordBatch:
    """Tasks by TASK_SCHEMA."""
    return pa.RecordBatch.from_pylist([_row(task) for task in tasks], TASK_SCHEMA)


def tasks_in(batch: pa.RecordBatch) -> Iterator[SegmentTask]:
    """The tasks of a batch by TASK_SCHEMA, or by one that has its columns among others."""
    return map(_task, batch.select(TASK_SCHEMA.names).to_pylist())


def _row(task: SegmentTask) -> dict[str, Any]:
    metadata, level = task.metadata, task.level
    partition = metadata.topic_id_partition
    log_bytes = sum(stored.size for part, stored in task.listed.items() if part is Part.LOG)
    other_bytes = sum(stored.size for part, stored in task.listed.items()) - log_bytes
    return {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "segmentId": metadata.segment_id,
        **{column: getattr(metadata, name) for column, name in _METADATA_COLUMNS},
        "segmentLeaderEpochs": [
            {"leaderEpoch": epoch, "offset": offset} for epoch, offset in metadata.segment_leader_epochs
        ],
        "objects": [_object_row(part, stored) for part, stored in task.listed.items()],
        "level": level.value,
        "indexIntervalBytes": task.index_interval_bytes,
        "bytesToRead": int(bytes_to_read(level, np.int64(log_bytes), np.int64(other_bytes))),
        "requests": int(requests(level, np.int64(len(task.listed)))),
    }


def bytes_to_read(level: Level, log_bytes: Any, other_bytes: Any) -> Any:
    """About how many a level reads of a log and of other objects of these sizes; numbers, or columns of them."""
    return other_bytes + (log_bytes if level is Level.FULL else np.minimum(log_bytes, _HEADERS_LOG_BYTES))


def requests(level: Level, objects: Any) -> Any:
    """About how many a level makes for that many objects; a number, or a column."""
    return objects + (0 if level is Level.FULL else _HEADERS_MORE_REQUESTS)


def _object_row(part: Part, stored: StoredObject) -> dict[str, Any]:
    return {
        "part": part.value,
        "key": key_bytes(stored.key),
        "size": stored.size,
        "lastModifiedMs": stored.last_modified_ms,
        "version": stored.version or None,
        "storageClass": stored.storage_class,
    }


def _task(row: dict[str, Any]) -> SegmentTask:
    metadata = RemoteLogSegmentMetadata(
        topic_id_partition=TopicIdPartition(row["topicId"], row["topic"], row["partition"]),
        segment_id=row["segmentId"],
        segment_leader_epochs=tuple((one["leaderEpoch"], one["offset"]) for one in row["segmentLeaderEpochs"]),
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        **{name: row[column] for column, name in _METADATA_COLUMNS},
    )
    listed = {
        Part(one["part"]): StoredObject(
            key_text(one["key"]),
            one["size"],
            one["lastModifiedMs"],
            one["version"] or "",
            one["storageClass"],
        )
        for one in row["objects"]
    }
    keys = {part: stored.key for part, stored in listed.items()}
    return SegmentTask(metadata, keys, Level(row["level"]), row["indexIntervalBytes"], listed)


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
    """The objects by OBJECT_TYPE."""
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
    are_empty = flag_array(numbers_in(pc.binary_length(texts)) == 0)
    # With a plain None or 0 for an argument, Arrow would import pandas where it is installed.
    return pc.if_else(are_empty, pa.nulls(len(texts), texts.type), texts)


def _lists(edges: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(number_array(edges.astype(np.int32)), values)


def _sizes(objects: pa.RecordBatch, edges: Ints) -> tuple[Ints, Ints]:
    """The sizes of each segment's log, and of its other objects, in bytes as stored."""
    sizes: NDArray[np.int64] = numbers_in(objects.column("size"))
    logs = np.where(numbers_in(objects.column("part")) == _LOG, sizes, 0)
    log_bytes: Ints = np.add.reduceat(logs, edges[:-1])
    return log_bytes, np.add.reduceat(sizes, edges[:-1]) - log_bytes

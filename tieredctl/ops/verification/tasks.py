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

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.key_text import key_bytes, key_text
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject

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

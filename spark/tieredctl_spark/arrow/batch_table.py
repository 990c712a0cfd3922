"""The record batches of a remote segment's log as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.arrow_columns import flag_array, number_array, text_array
from tieredctl.formats.batch_columns import AsColumns, HeaderColumns
from tieredctl.formats.compression import Codec
from tieredctl.formats.log_scan import Damage, LogBlock, scan_log
from tieredctl.formats.record_batches import LOG_OVERHEAD, Attributes
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl_spark.arrow.instants import INSTANT, instants

BATCH_TABLE_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "segmentId": pa.string(),
        "position": pa.int64(),
        "size": pa.int64(),
        "baseOffset": pa.int64(),
        "lastOffset": pa.int64(),
        "recordsCount": pa.int32(),
        "baseTimestamp": INSTANT,
        "maxTimestamp": INSTANT,
        "timestampType": pa.string(),
        "producerId": pa.int64(),
        "producerEpoch": pa.int16(),
        "baseSequence": pa.int32(),
        "partitionLeaderEpoch": pa.int32(),
        "codec": pa.string(),
        "isTransactional": pa.bool_(),
        "isControl": pa.bool_(),
        "crc": pa.int64(),
        "isValid": pa.bool_(),
        "problem": pa.string(),
    }
)
"""A row for each record batch of a segment's log, in the order of the log, named as Kafka names them.

`position` and `size` are bytes of the log as the broker wrote it; offsets are inclusive; `timestampType` is CreateTime
or LogAppendTime. `isValid` says whether the batch has the CRC-32C that its header states.
A stretch in which no batch is sound is a row, too: `isValid` is false there, `problem` says why, and of the other
columns only `position` and `size` are set. A segment that cannot be read, or not to its end, has a row with `problem`,
and `position` where it is known, in which `isValid` is null: nothing is known of what follows there."""

_READ_BYTES = 1 << 22
_CODECS = text_array([*(codec.name.lower() for codec in Codec), "5", "6", "7"])
_TIMESTAMP_TYPES = text_array(["CreateTime", "LogAppendTime"])
_CODEC_BITS = 7
_TIMES = ("baseTimestamp", "maxTimestamp")
_NUMBERS = (
    "baseOffset",
    "recordsCount",
    "producerId",
    "producerEpoch",
    "baseSequence",
    "partitionLeaderEpoch",
)


def batch_tables(segment: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout) -> Iterator[pa.Table]:
    """The batches of a segment, by BATCH_TABLE_SCHEMA, some MiB of the log at a time. Where there is a problem, the
    segment is read again over new connections, and it is what that reading finds from there on: bytes may be altered
    on the way.

    Raises TieredctlError only for what every other segment would meet too, such as a store that does not answer.
    """
    reached = 0
    for table in _read_once(segment, store, layout):
        if table.column("problem").null_count < len(table):
            break
        reached = pc.max(_ends(table)).as_py() or reached
        yield table
    else:
        return
    for table in _read_once(segment, store.reconnected(), layout):
        yield table.filter(pc.fill_null(pc.greater(_ends(table), reached), True))


def _ends(table: pa.Table) -> pa.ChunkedArray:
    """The positions where rows end; null where that is not known."""
    return pc.add(table.column("position"), table.column("size"))


def _read_once(segment: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout) -> Iterator[pa.Table]:
    reader = layout.open_segment(store, segment)
    try:
        size = reader.parts().get(Part.LOG)
        if size is None:
            yield _problem_table(segment, "the segment has no log", None, None, is_valid=None)
            return
        for part in scan_log(reader.stream(Part.LOG, _READ_BYTES), size, AsColumns(), segment.start_offset):
            if isinstance(part, Damage):
                length = part.end - part.position
                yield _problem_table(segment, part.reason, part.position, length, is_valid=False)
            else:
                yield _block_table(segment, part)
    except DecodeError as error:
        yield _problem_table(segment, error.reason, error.position, None, is_valid=None)
    except TieredctlError as error:
        if error.code in CONCERN_EVERY_OBJECT:
            raise
        yield _problem_table(segment, error.message, None, None, is_valid=None)


def _block_table(segment: RemoteLogSegmentMetadata, block: LogBlock[HeaderColumns]) -> pa.Table:
    headers, count = block.headers, len(block.positions)
    attributes = headers["attributes"].astype(np.int16)
    found: dict[str, Any] = {name: number_array(headers[name]) for name in _NUMBERS}
    found |= {name: instants(number_array(headers[name])) for name in _TIMES}
    found |= {
        "position": number_array(np.asarray(block.positions, np.int64) + block.file_position),
        "size": number_array(headers["batchLength"].astype(np.int64) + LOG_OVERHEAD),
        "lastOffset": number_array(headers["baseOffset"].astype(np.int64) + headers["lastOffsetDelta"]),
        "crc": number_array(headers["crc"].astype(np.int64)),
        "codec": _CODECS.take(number_array(attributes & _CODEC_BITS)),
        "timestampType": _TIMESTAMP_TYPES.take(
            number_array(((attributes & Attributes.LOG_APPEND_TIME) != 0).astype(np.int8))
        ),
        "isTransactional": flag_array((attributes & Attributes.TRANSACTIONAL) != 0),
        "isControl": flag_array((attributes & Attributes.CONTROL) != 0),
        "isValid": flag_array(np.ones(count, np.bool_)),
    }
    return _table(segment, count, found)


def _problem_table(
    segment: RemoteLogSegmentMetadata, problem: str, position: int | None, size: int | None, *, is_valid: bool | None
) -> pa.Table:
    said = {"position": position, "size": size, "isValid": is_valid, "problem": problem}
    columns = {name: pa.array([value], BATCH_TABLE_SCHEMA.field(name).type) for name, value in said.items()}
    return _table(segment, 1, columns)


def _table(segment: RemoteLogSegmentMetadata, count: int, columns: dict[str, Any]) -> pa.Table:
    partition = segment.topic_id_partition
    same = {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "segmentId": segment.segment_id,
    }
    repeated = {
        name: pa.repeat(pa.scalar(value, BATCH_TABLE_SCHEMA.field(name).type), count) for name, value in same.items()
    }
    absent = {field.name: pa.nulls(count, field.type) for field in BATCH_TABLE_SCHEMA}
    return pa.table(absent | repeated | columns, BATCH_TABLE_SCHEMA)

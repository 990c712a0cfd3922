"""What the coordinator answers from its state: offsets by timestamp, batches from an offset on, what becomes of a file.

Where the proposal is silent, the rules are those of Inkless's control plane, which serves the same consumers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from tieredctl_proposals.model.diskless_requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    UNKNOWN,
    BatchesResult,
    BatchQuery,
    FileResult,
    FindBatches,
    FoundBatch,
    FoundBatches,
    KafkaError,
    OffsetQuery,
    OffsetResult,
)

_PARTITION = "SELECT id, log_start_offset, high_watermark FROM partitions WHERE topic_id = ? AND partition = ?"
_HAS_TOPIC = "SELECT 1 FROM partitions WHERE topic_id = ?"
# A batch's own time: what its records have, by their producer or by the coordinator.
_TIME = "CASE timestamp_type WHEN 1 THEN log_append_timestamp ELSE batch_max_timestamp END"
_NEWEST = f"""
    SELECT {_TIME} AS time, last_offset FROM batches WHERE partition = ? ORDER BY time DESC, last_offset LIMIT 1"""
_FROM_TIME = f"""
    SELECT {_TIME} AS time, base_offset FROM batches WHERE partition = ? AND time >= ? ORDER BY last_offset LIMIT 1"""
_FROM_OFFSET = """
    SELECT batch_id, object_key, magic, byte_offset, byte_size, base_offset, last_offset, log_append_timestamp,
        batch_max_timestamp, timestamp_type
    FROM batches JOIN files ON files.id = batches.file WHERE partition = ? AND last_offset >= ? ORDER BY last_offset"""
_FILE = "SELECT released_ms IS NULL FROM files WHERE object_key = ?"
_OLDEST = "SELECT min(committed_ms) FROM files WHERE released_ms IS NULL"
_RELEASED = """
    SELECT object_key, format, size, owner_ids, released_ms FROM files WHERE released_ms >= ?
    ORDER BY released_ms, id"""
_FIRST_TIME = -(1 << 63)


class ReleasedFile(NamedTuple):
    """A file none of whose batches is live here, its owners in turn, and since when that is so."""

    object_key: str
    object_format: int
    file_size: int
    owner_ids: tuple[int, ...]
    released_ms: int


def list_offset(connection: sqlite3.Connection, asked: OffsetQuery) -> OffsetResult:
    """The offset for a timestamp, or for a special one. Nothing that a coordinator has is in tiered storage."""
    topic_id, number, timestamp_ms = asked
    refusal = asked.refusal()
    if refusal is not None:
        return OffsetResult(topic_id, number, *refusal)
    partition_row = connection.execute(_PARTITION, (topic_id, number)).fetchone()
    if partition_row is None:
        return OffsetResult(topic_id, number, _unknown(connection, topic_id))
    identifier, start, end = partition_row
    special = {LATEST: end, EARLIEST: start, EARLIEST_LOCAL: start, LATEST_TIERED: UNKNOWN}
    if timestamp_ms in special:
        return OffsetResult(topic_id, number, offset=special[timestamp_ms])
    if timestamp_ms == MAX_TIMESTAMP:
        row = connection.execute(_NEWEST, (identifier,)).fetchone()
    else:
        row = connection.execute(_FROM_TIME, (identifier, timestamp_ms)).fetchone()
    time_ms, offset = row or (UNKNOWN, UNKNOWN)
    return OffsetResult(topic_id, number, timestamp_ms=time_ms, offset=max(offset, start) if row else UNKNOWN)


def find_batches(connection: sqlite3.Connection, request: FindBatches, *, is_follower: bool = False) -> FoundBatches:
    """Batches of each partition from the one that has the offset on, as far as the limits allow; 0 limits the number of
    batches not at all. The first batch of all is found however large it is, or a consumer would be stuck.

    A follower may lack what the leader has: it answers for an offset beyond its own that it is not available yet.
    """
    left = request.fetch_max_bytes
    results: list[BatchesResult] = []
    is_first = True
    for asked in request.partitions:
        partition_row = connection.execute(_PARTITION, (asked.topic_id, asked.partition)).fetchone()
        if partition_row is None:
            results.append(BatchesResult(asked.topic_id, asked.partition, _unknown(connection, asked.topic_id)))
            continue
        identifier, start, end = partition_row
        error = _out_of_range(asked, start, end, is_follower)
        batches: tuple[FoundBatch, ...] = ()
        if error is KafkaError.NONE:
            rows = map(FoundBatch._make, connection.execute(_FROM_OFFSET, (identifier, asked.offset)))
            most_bytes = min(left, asked.max_partition_fetch_bytes)
            batches = tuple(_within(rows, most_bytes, request.max_batches_per_partition, is_first))
        left -= sum(batch.byte_size for batch in batches)
        is_first = is_first and not batches
        results.append(BatchesResult(asked.topic_id, asked.partition, error, start, end, batches))
    return FoundBatches(tuple(results))


def describe_file(connection: sqlite3.Connection, object_key: str) -> FileResult:
    """Whether a file has live batches here; RESOURCE_NOT_FOUND where it is not known."""
    row = connection.execute(_FILE, (object_key,)).fetchone()
    if row is None:
        return FileResult(object_key, KafkaError.RESOURCE_NOT_FOUND)
    return FileResult(object_key, has_live_batches=bool(row[0]))


def oldest_live_file_ms(connection: sqlite3.Connection) -> int | None:
    """When the oldest file that has live batches was committed: the threshold of the search for orphans starts from it.
    None where there is no such file."""
    (oldest,) = connection.execute(_OLDEST).fetchone()
    return None if oldest is None else int(oldest)


def released_files(connection: sqlite3.Connection, since_ms: int = _FIRST_TIME) -> Iterator[ReleasedFile]:
    """The files to hand over or to delete, those released first coming first; or those released from a time on."""
    for key, object_format, size, owner_ids, released_ms in connection.execute(_RELEASED, (since_ms,)):
        yield ReleasedFile(key, object_format, size, tuple(map(int, owner_ids.split(","))), released_ms)


def _within(rows: Iterator[FoundBatch], max_bytes: int, max_batches: int, is_first: bool) -> Iterator[FoundBatch]:
    for number, batch in enumerate(rows, 1):
        max_bytes -= batch.byte_size
        if max_bytes < 0 and not (is_first and number == 1):
            return
        yield batch
        if number == max_batches:
            return


def _out_of_range(asked: BatchQuery, start: int, end: int, is_follower: bool) -> KafkaError:
    if start <= asked.offset <= end:
        return KafkaError.NONE
    is_late = is_follower and asked.offset > end
    return KafkaError.OFFSET_NOT_AVAILABLE if is_late else KafkaError.OFFSET_OUT_OF_RANGE


def _unknown(connection: sqlite3.Connection, topic_id: str) -> KafkaError:
    topic_row = connection.execute(_HAS_TOPIC, (topic_id,)).fetchone()
    return KafkaError.UNKNOWN_TOPIC_OR_PARTITION if topic_row else KafkaError.UNKNOWN_TOPIC_ID

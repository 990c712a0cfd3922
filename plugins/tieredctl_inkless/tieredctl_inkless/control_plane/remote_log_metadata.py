"""Inkless's remote log metadata manager in PostgreSQL: what the schema inkless_rlmm says of an offset."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text
from tieredctl_inkless.control_plane.migrations import REMOTE_LOG_METADATA, Migration, schema_version

Ask = Callable[..., list[tuple[Any, ...]]]
"""Asks a query, with values by name, in the transaction that sees one moment."""

_IS_THERE = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'inkless_rlmm')"
_HISTORY = (
    "SELECT version, script, checksum, success FROM inkless_rlmm.flyway_schema_history_rlmm WHERE type <> 'SCHEMA'"
)
# As Kafka's cache does it: of each leader epoch the referenced segment that begins last, if it reaches to the offset.
_SEGMENTS = (
    "SELECT s.cluster_id, s.segment_id, s.start_offset, s.end_offset, s.max_timestamp_ms, s.segment_size,"
    " s.txn_idx_empty, s.leader_epochs::text, s.state, s.custom_metadata, s.broker_id, s.event_timestamp_ms"
    " FROM (SELECT DISTINCT ON (cluster_id, epoch) * FROM inkless_rlmm.rlmm_segment_epochs"
    " WHERE topic_id = %(topic_id)s AND partition_id = %(partition)s AND referenced"
    " AND epoch_start_offset <= %(offset)s ORDER BY cluster_id, epoch, epoch_start_offset DESC) e"
    " JOIN inkless_rlmm.rlmm_segments s USING (cluster_id, topic_id, partition_id, segment_id)"
    " WHERE e.epoch_end_offset >= %(offset)s ORDER BY e.epoch DESC"
)


def is_kept_here(ask: Ask) -> bool:
    """Whether the database has that schema."""
    ((answer,),) = ask(_IS_THERE)
    return bool(answer)


def segment_of(ask: Ask, partition: TopicIdPartition, offset: int) -> RemoteLogSegmentMetadata | None:
    """The segment of which an offset is served. Raises TieredctlError `control-plane-unknown` for a schema that is not
    known, or that holds the partition for several clusters, and DecodeError for a row that no manager writes."""
    history = ask(_HISTORY)
    schema_version(((Migration(*made), success) for *made, success in history), REMOTE_LOG_METADATA)
    place = {"topic_id": uuid_bytes(partition.topic_id).hex(), "partition": partition.partition, "offset": offset}
    rows = ask(_SEGMENTS, **place)
    clusters = sorted({str(row[0]) for row in rows})
    if len(clusters) > 1:
        message = f"The database's schema inkless_rlmm has {partition} for several clusters: {', '.join(clusters)}."
        raise TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message)
    return _segment(partition, rows[0][1:]) if rows else None


def _segment(partition: TopicIdPartition, row: tuple[Any, ...]) -> RemoteLogSegmentMetadata:
    segment_id, start, end, max_timestamp_ms, size, txn_idx_empty, epochs, state, custom, broker_id, event_ms = row
    if state != RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
        raise DecodeError(f"segment {uuid_text(segment_id.bytes)} serves reads in state {state}", 0)
    return RemoteLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=uuid_text(segment_id.bytes),
        start_offset=start,
        end_offset=end,
        author=broker_id,
        max_timestamp_ms=max_timestamp_ms,
        event_timestamp_ms=event_ms,
        segment_leader_epochs=_leader_epochs(epochs),
        segment_size_in_bytes=size,
        custom_metadata=custom,
        state=RemoteLogSegmentState(state),
        txn_idx_empty=txn_idx_empty,
    )


def _leader_epochs(text: str) -> tuple[tuple[int, int], ...]:
    """An object of leader epochs and their first offsets."""
    try:
        return tuple(sorted((int(epoch), int(first)) for epoch, first in json.loads(text).items()))
    except (AttributeError, TypeError, ValueError):
        raise DecodeError("a segment's leader epochs are not an object of numbers", 0) from None

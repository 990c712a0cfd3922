"""What is asked of the control plane's tables, in SQL: each column as tieredctl names it, and since which version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa

from tieredctl_inkless.control_plane.copied_columns import NULL, Column
from tieredctl_inkless.diskless.control_plane import BATCHES, FILES, LOGS, PRODUCERS, FileState

_STATES = " ".join(
    f"WHEN '{state.name.lower()}' THEN {state.value}" for state in FileState if state is not FileState.UNKNOWN
)
_FILE = {
    "fileId": "f.file_id",
    "objectKey": "f.object_key",
    "format": "f.format",
    "state": f"CASE f.state::text {_STATES} ELSE {FileState.UNKNOWN.value} END",
    "uploaderBrokerId": "f.uploader_broker_id",
    "committedMs": "extract(epoch FROM f.committed_at) * 1000",
    "markedForDeletionMs": f"coalesce(extract(epoch FROM f.marked_for_deletion_at) * 1000, {NULL})",
    "size": "f.size",
}
_BATCH = {
    "batchId": "b.batch_id",
    "topicId": "b.topic_id",
    "partition": "b.partition",
    "baseOffset": "b.base_offset",
    "lastOffset": "b.last_offset",
    "fileId": "b.file_id",
    "byteOffset": "b.byte_offset",
    "byteSize": "b.byte_size",
    "magic": "b.magic",
    "timestampType": "b.timestamp_type",
    "logAppendTimestamp": "b.log_append_timestamp",
    "batchMaxTimestamp": "b.batch_max_timestamp",
}
_LOG = {
    "topicId": "l.topic_id",
    "partition": "l.partition",
    "topic": "l.topic_name",
    "logStartOffset": "l.log_start_offset",
    "highWatermark": "l.high_watermark",
    "byteSize": "l.byte_size",
    "disklessStartOffset": "l.diskless_start_offset",
    "remoteLogStartOffset": f"coalesce(l.remote_log_start_offset, {NULL})",
}
_PRODUCER = {
    "topicId": "p.topic_id",
    "partition": "p.partition",
    "producerId": "p.producer_id",
    "producerEpoch": "p.producer_epoch",
    "baseSequence": "p.base_sequence",
    "lastSequence": "p.last_sequence",
    "assignedOffset": "p.assigned_offset",
    "batchMaxTimestamp": "p.batch_max_timestamp",
}
_LATER: Mapping[str, tuple[int, str]] = {"remoteLogStartOffset": (16, str(NULL))}
"""Columns that a later version brought: that version, and what is read before it."""

# Flyway's own row for a schema that it made is not a migration.
HISTORY = "SELECT version, script, checksum, success FROM flyway_schema_history WHERE type <> 'SCHEMA'"
# Flyway dates migrations by the local time of the broker that made them, which may be twelve hours behind UTC.
MADE = (
    "SELECT coalesce(max(extract(epoch FROM made AT TIME ZONE 'UTC') * 1000)::bigint + 12 * 3600000, 0)"
    " FROM (SELECT min(installed_on) AS made FROM flyway_schema_history) AS history"
)
# A standby knows only what was committed up to the last transaction that it replayed: to it, it is as late as that.
CLOCK = (
    "SELECT (extract(epoch FROM CASE WHEN pg_is_in_recovery()"
    " THEN coalesce(pg_last_xact_replay_timestamp(), to_timestamp(0)) ELSE clock_timestamp() END) * 1000)::bigint"
)
# Another database or schema, a copy of it, and one that was restored or promoted differ in one of these.
DATABASE = (
    "SELECT s.system_identifier || '/' || d.oid || '.' || 'files'::regclass::oid"
    " || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)"
    " FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()"
)
# A copy of its disk is the same by all of these, and has written less.
WRITTEN = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"
# By a policy that hides rows from the role, PostgreSQL refuses the question instead of leaving them out.
ALL_ROWS = "SET LOCAL row_security = off"
# Whoever set a limit keeps it.
TIME_LIMIT = "SELECT set_config(%(name)s, %(limit)s, true) WHERE current_setting(%(name)s) = '0'"
# Views may leave rows out, and a schema that comes first in the search_path may have a table of the same name.
TABLES = (
    "SELECT name, c.relkind::text, n.nspname FROM unnest(%(names)s::text[]) AS name"
    " JOIN pg_class c ON c.oid = to_regclass(name) JOIN pg_namespace n ON n.oid = c.relnamespace"
)
COLUMNS = (
    "SELECT name, a.attname::text FROM unnest(%(names)s::text[]) AS name"
    " JOIN pg_attribute a ON a.attrelid = to_regclass(name) WHERE a.attnum > 0 AND NOT a.attisdropped"
)
# Also of tables that a command does not read: what they say of those that it reads is known to be whole.
HIDDEN = "SELECT name FROM unnest(%(names)s::text[]) AS name WHERE row_security_active(to_regclass(name))"
IS_SUBSCRIBED = "SELECT EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = to_regclass('files'))"
IS_STANDBY = "SELECT pg_is_in_recovery()"
ALL_FILES = "FROM files f ORDER BY f.file_id"
ALL_BATCHES = "FROM batches b ORDER BY b.topic_id, b.partition, b.last_offset, b.batch_id"
ALL_LOGS = "FROM logs l ORDER BY l.topic_id, l.partition"
ALL_PRODUCERS = "FROM producer_state p ORDER BY p.topic_id, p.partition, p.assigned_offset, p.row_id"
FILE_OF_KEY = "FROM files f WHERE f.object_key = %(key)s"
FILE_OF_ID = "FROM files f WHERE f.file_id = %(file)s"
BATCHES_OF_FILE = (
    "FROM batches b LEFT JOIN logs l USING (topic_id, partition)"
    " WHERE b.file_id = %(file)s ORDER BY b.byte_offset, b.batch_id"
)
LOGS_OF_NAME = "FROM logs l WHERE l.topic_name = %(topic)s AND l.partition = %(partition)s ORDER BY l.topic_id"
BATCH_OF_OFFSET = (
    "FROM batches b WHERE b.topic_id = %(topic_id)s AND b.partition = %(partition)s AND b.last_offset >= %(offset)s"
    " ORDER BY b.last_offset LIMIT 1"
)
PARTITIONS_OF_FILE = (
    "SELECT count(*) FROM (SELECT DISTINCT topic_id, partition FROM batches WHERE file_id = %(file)s) AS here"
)
STATES_OF_KEYS = f"SELECT f.object_key, ({_FILE['state']})::smallint FROM files f WHERE f.object_key = ANY(%(keys)s)"

FILES_OF_KEYS = (
    f"SELECT f.object_key, f.file_id, ({_FILE['state']})::smallint,"
    " (SELECT count(*) FROM batches b WHERE b.file_id = f.file_id),"
    f" ({_FILE['committedMs']})::bigint, (extract(epoch FROM f.marked_for_deletion_at) * 1000)::bigint"
    " FROM files f WHERE f.object_key = ANY(%(keys)s)"
)
NEWEST_COMMIT = "SELECT coalesce(max(extract(epoch FROM f.committed_at) * 1000), 0)::bigint FROM files f"
LACKS_FILES = "SELECT EXISTS (SELECT FROM batches b WHERE NOT EXISTS (SELECT FROM files f WHERE f.file_id = b.file_id))"


def file_columns() -> list[Column]:
    """The columns of FILES."""
    return _columns(FILES, _FILE)


def batch_columns(*, with_topic: bool = False) -> list[Column]:
    """The columns of BATCHES; with the topic's name, empty where no log has the partition, if the query joins
    `logs`."""
    topic = [Column("topic", "coalesce(l.topic_name, '')", pa.string())] if with_topic else []
    return [*_columns(BATCHES, _BATCH), *topic]


def log_columns(version: int) -> list[Column]:
    """The columns of LOGS, in a schema of a version."""
    return _columns(LOGS, _LOG, version)


def producer_columns() -> list[Column]:
    """The columns of PRODUCERS."""
    return _columns(PRODUCERS, _PRODUCER)


def demanded_columns(version: int) -> Iterator[tuple[str, str]]:
    """Each table and column that is read of a schema of a version."""
    tables = {"f": ("files", _FILE), "b": ("batches", _BATCH), "l": ("logs", _LOG), "p": ("producer_state", _PRODUCER)}
    for alias, (table, expressions) in tables.items():
        for name, expression in expressions.items():
            if version >= _LATER.get(name, (0, ""))[0]:
                yield from ((table, column) for column in re.findall(rf"\b{alias}\.(\w+)", expression))


def _columns(schema: pa.Schema, expressions: Mapping[str, str], version: int | None = None) -> list[Column]:
    selected = []
    for field in schema:
        since, before = _LATER.get(field.name, (0, ""))
        is_there = version is None or version >= since
        selected.append(Column(field.name, expressions[field.name] if is_there else before, field.type))
    return selected

"""The control plane of the capture `inkless`, in a real PostgreSQL, and its bucket as a folder."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from .postgres import PostgresServer

CAPTURED = "captured"
TABLES = ("logs", "files", "batches", "producer_state", "flyway_schema_history")
READER = "inkless_reader"
GRANTS = (
    f"GRANT USAGE ON SCHEMA public TO {READER}",
    f"GRANT SELECT ON files, batches, logs, producer_state, flyway_schema_history TO {READER}",
)
"""The least that the commands need, besides CONNECT, which every role has unless it was taken away."""

SCHEMA = (
    "CREATE DOMAIN offset_t AS bigint NOT NULL CHECK (VALUE >= 0)",
    "CREATE DOMAIN offset_nullable_t AS bigint CHECK (VALUE >= 0)",
    "CREATE DOMAIN byte_size_t AS bigint NOT NULL CHECK (VALUE >= 0)",
    "CREATE DOMAIN partition_t AS int NOT NULL CHECK (VALUE >= 0)",
    "CREATE DOMAIN timestamp_ms_t AS bigint NOT NULL CHECK (VALUE >= -5)",
    "CREATE DOMAIN timestamp_ms_nullable_t AS bigint CHECK (VALUE >= -5)",
    "CREATE DOMAIN timestamp_type_t AS smallint NOT NULL CHECK (VALUE BETWEEN -1 AND 1)",
    "CREATE DOMAIN magic_t AS smallint NOT NULL CHECK (VALUE BETWEEN 0 AND 2)",
    "CREATE DOMAIN format_t AS smallint NOT NULL CHECK (VALUE BETWEEN 1 AND 3)",
    "CREATE DOMAIN broker_id_t AS int NOT NULL",
    "CREATE DOMAIN object_key_t AS varchar(1024) NOT NULL",
    "CREATE DOMAIN topic_name_t AS varchar(255) NOT NULL",
    "CREATE DOMAIN producer_id_t AS bigint NOT NULL CHECK (VALUE >= -1)",
    "CREATE DOMAIN producer_epoch_t AS smallint NOT NULL CHECK (VALUE >= -1)",
    "CREATE DOMAIN sequence_t AS int NOT NULL CHECK (VALUE >= -1)",
    "CREATE TYPE file_reason_t AS ENUM ('produce', 'merge')",
    "CREATE TYPE file_state_t AS ENUM ('uploaded', 'deleting')",
    """CREATE TABLE logs (
        topic_id uuid NOT NULL,
        partition partition_t,
        topic_name topic_name_t,
        log_start_offset offset_t,
        high_watermark offset_t,
        byte_size byte_size_t DEFAULT 0,
        diskless_start_offset offset_t DEFAULT 0,
        remote_log_start_offset offset_nullable_t DEFAULT NULL,
        earliest_batch_timestamp timestamp_ms_nullable_t DEFAULT NULL,
        PRIMARY KEY (topic_id, partition))""",
    """CREATE TABLE files (
        file_id bigserial PRIMARY KEY,
        object_key object_key_t UNIQUE,
        format format_t,
        reason file_reason_t NOT NULL,
        state file_state_t NOT NULL,
        uploader_broker_id broker_id_t,
        committed_at timestamptz NOT NULL,
        marked_for_deletion_at timestamptz,
        size byte_size_t)""",
    """CREATE TABLE batches (
        batch_id bigserial PRIMARY KEY,
        magic magic_t,
        topic_id uuid NOT NULL,
        partition partition_t,
        base_offset offset_t,
        last_offset offset_t,
        file_id bigint NOT NULL REFERENCES files (file_id) ON DELETE RESTRICT,
        byte_offset byte_size_t,
        byte_size byte_size_t,
        timestamp_type timestamp_type_t,
        log_append_timestamp timestamp_ms_t,
        batch_max_timestamp timestamp_ms_t,
        FOREIGN KEY (topic_id, partition) REFERENCES logs (topic_id, partition) ON DELETE NO ACTION)""",
    """CREATE TABLE producer_state (
        topic_id uuid NOT NULL,
        partition partition_t,
        producer_id producer_id_t,
        row_id bigserial,
        producer_epoch producer_epoch_t,
        base_sequence sequence_t,
        last_sequence sequence_t,
        assigned_offset bigint NOT NULL,
        batch_max_timestamp timestamp_ms_t,
        PRIMARY KEY (topic_id, partition, producer_id, row_id))""",
    """CREATE TABLE flyway_schema_history (
        installed_rank integer PRIMARY KEY,
        version varchar(50),
        description varchar(200) NOT NULL,
        type varchar(20) NOT NULL,
        script varchar(1000) NOT NULL,
        checksum integer,
        installed_by varchar(100) NOT NULL,
        installed_on timestamp NOT NULL DEFAULT now(),
        execution_time integer NOT NULL,
        success boolean NOT NULL)""",
    "CREATE INDEX batches_by_file ON batches (file_id)",
    "CREATE INDEX batches_by_last_offset_covering_idx ON batches (topic_id, partition, last_offset)",
)


@dataclass(frozen=True)
class InklessCapture:
    """What was captured, as if it had been captured just now: all times are later by the same span."""

    folder: Path
    now_ms: int
    """When it was taken out."""

    @classmethod
    def now(cls, folder: Path) -> InklessCapture:
        return cls(folder, time.time_ns() // 1_000_000)

    @cached_property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = self._read("capture.json")
        return document

    @cached_property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Every row, its times shifted."""
        tables: dict[str, list[dict[str, Any]]] = self._read("tables.json")
        for row in tables["files"]:
            for name in ("committed_at", "marked_for_deletion_at"):
                if row[name] is not None:
                    row[name] = datetime.fromisoformat(row[name]) + timedelta(milliseconds=self.shift_ms)
        first = min(row["committed_at"] for row in tables["files"])
        for row in tables["flyway_schema_history"]:
            # The capture's commits were given earlier times than its schema; in a real cluster they come after it.
            row["installed_on"] = (first - timedelta(days=30)).astimezone(UTC).replace(tzinfo=None)
        return tables

    @property
    def shift_ms(self) -> int:
        return self.now_ms - int(self.document["captured_at_ms"])

    @cached_property
    def times_ms(self) -> dict[str, int]:
        """When each object of the bucket was written, shifted."""
        return {one["key"]: one["last_modified_ms"] + self.shift_ms for one in self._read("bucket_listing.json")}

    def objects(self) -> dict[str, bytes]:
        return {key: (self.folder / "bucket" / key).read_bytes() for key in self.times_ms}

    def copy_bucket(self, folder: Path) -> Path:
        """A copy that may be changed, with the times of the listing."""
        shutil.copytree(self.folder / "bucket", folder)
        for key, modified_ms in self.times_ms.items():
            os.utime(folder / key, (modified_ms / 1000, modified_ms / 1000))
        return folder

    def restore(self, server: PostgresServer, database: str = CAPTURED) -> None:
        """Makes a database with the captured rows, and the role that may read them."""
        server.run("postgres", f"CREATE DATABASE {database}")
        server.add_role(READER)
        server.run(database, *SCHEMA)
        self.fill(server, database)

    def fill(self, server: PostgresServer, database: str) -> None:
        """Gives the tables the captured rows, and no others, and the reader its grants."""
        with server.connected(database) as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for table in TABLES:
                cursor.execute(f"DELETE FROM {table}")
                rows = self.tables[table]
                columns = list(rows[0])
                places = ", ".join(["%s"] * len(columns))
                cursor.executemany(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})",
                    [tuple(row.values()) for row in rows],
                )
            for table, column in (("files", "file_id"), ("batches", "batch_id"), ("producer_state", "row_id")):
                cursor.execute(f"SELECT setval('{table}_{column}_seq', (SELECT max({column}) FROM {table}))")
            for grant in GRANTS:
                cursor.execute(grant)

    def _read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Inkless:
    """A control plane and a bucket that a test may change."""

    server: PostgresServer
    database: str
    bucket: Path
    capture: InklessCapture

    @property
    def control_plane(self) -> tuple[str, str]:
        """The option, with a role that has the least grants."""
        return "--control-plane", self.server.url(self.database, READER)

    @property
    def places(self) -> tuple[str, ...]:
        return (*self.control_plane, "--store", f"file:{self.bucket}")

    def run(self, *statements: str) -> None:
        """Alters the database as nobody but its owner could: keys that refer to others are not checked."""
        self.server.run(self.database, "SET session_replication_role = replica", *statements)

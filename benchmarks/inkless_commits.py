"""The same commits by Inkless's own control plane: its migrations, from a checkout of it, in PostgreSQL here."""

from __future__ import annotations

import os
import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.coordinator_load import BATCHES_IN_A_FILE, PARTITIONS, TOPIC_ID, Committed, requests
from tests.rigs.postgres import PostgresServer
from tieredctl.model.ids import uuid_bytes

MIGRATIONS = Path("storage/inkless/src/main/resources/db/migration")
_MIGRATION = re.compile(r"V(\d+)__\w+\.sql")
_FIELDS = {
    "magic": "smallint",
    "topic_id": "uuid",
    "partition": "int",
    "byte_offset": "bigint",
    "byte_size": "bigint",
    "base_offset": "bigint",
    "last_offset": "bigint",
    "timestamp_type": "smallint",
    "batch_max_timestamp": "bigint",
    "producer_id": "bigint",
    "producer_epoch": "smallint",
    "base_sequence": "int",
    "last_sequence": "int",
}
"""Of its type commit_batch_request_v1."""
_SIZE = "SELECT pg_database_size('inkless')"
_COMMIT = f"""
    SELECT count(*) FILTER (WHERE error = 'none') FROM commit_file_v2(%s, 1::smallint, 1, %s, now(), ARRAY(
        SELECT ROW({", ".join(_FIELDS)})::commit_batch_request_v1
        FROM unnest({", ".join(f"%s::{kind}[]" for kind in _FIELDS.values())}) AS batch ({", ".join(_FIELDS)})))"""


def commit_with_inkless(checkout: Path, batches: int) -> Committed:
    """Commits files one after the other; `cpu` has what this process and the server's, for its connection, took. The
    server does not sync, so that its figures are those of its functions.

    Raises RuntimeError where its functions cannot be had, or refuse a batch.
    """
    with PostgresServer() as server:
        server.run("postgres", "CREATE DATABASE inkless")
        with closing(server.connected("inkless")) as connection:
            _migrate(connection, checkout)
            connection.execute(
                """INSERT INTO logs (topic_id, partition, topic_name, log_start_offset, high_watermark)
                SELECT %s::uuid, number, 'orders', 0, 0 FROM generate_series(0, %s) AS number""",
                (uuid_bytes(TOPIC_ID).hex(), PARTITIONS - 1),
            )
            (server_process,) = connection.execute("SELECT pg_backend_pid()").fetchone()
            (empty,) = connection.execute(_SIZE).fetchone()
            wall = cpu = 0.0
            for request in requests(batches):
                columns = _columns(request.batches)
                began, began_cpu = time.perf_counter(), time.process_time() + _cpu_of(server_process)
                answer = connection.execute(_COMMIT, (request.object_key, request.file_size, *columns)).fetchone()
                wall += time.perf_counter() - began
                cpu += time.process_time() + _cpu_of(server_process) - began_cpu
                if answer != (BATCHES_IN_A_FILE,):
                    raise RuntimeError(f"accepted {answer} of {BATCHES_IN_A_FILE} batches")
            (size,) = connection.execute(_SIZE).fetchone()
    return Committed(batches, wall, cpu, size - empty)


def _migrate(connection: Any, checkout: Path) -> None:
    """Applies migrations in turn, as far as this release of PostgreSQL takes them: 15 does not know all that the bodies
    of other functions use, so they are not looked at."""
    connection.execute("SET check_function_bodies = off")
    found = [
        (int(name[1]), file) for file in (checkout / MIGRATIONS).iterdir() if (name := _MIGRATION.match(file.name))
    ]
    for _, file in sorted(found):
        try:
            with connection.transaction():
                connection.execute(file.read_text(encoding="utf-8"))
        except psycopg.Error as error:
            print(f"  stopped before {file.name}: {error}".splitlines()[0])
            break
    (known,) = connection.execute("SELECT count(*) FROM pg_proc WHERE proname = 'commit_file_v2'").fetchone()
    if not known:
        raise RuntimeError("this checkout and this PostgreSQL have no commit_file_v2")


def _columns(batches: Any) -> list[list[Any]]:
    topic_id = str(uuid_bytes(TOPIC_ID).hex())
    return [
        [one.magic for one in batches],
        [topic_id] * len(batches),
        [one.partition for one in batches],
        [one.byte_offset for one in batches],
        [one.byte_size for one in batches],
        [one.base_offset for one in batches],
        [one.last_offset for one in batches],
        [one.timestamp_type for one in batches],
        [one.batch_max_timestamp_ms for one in batches],
        [one.producer_id for one in batches],
        [one.producer_epoch for one in batches],
        [one.base_sequence for one in batches],
        [one.last_sequence for one in batches],
    ]


def _cpu_of(process: int) -> float:
    """In seconds, of a process of this machine."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

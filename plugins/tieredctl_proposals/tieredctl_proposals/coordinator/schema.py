"""The coordinator's local state: one SQLite database per partition of `__diskless_metadata`.

It is a cache of the log, never the source of truth (KIP-1164, "Local state machine"): whatever is wrong with it, it is
rebuilt. Ids are offsets of the log, so that every replica gives the same ones: a partition's is the offset of the
record that created it, a file's that of its commit. Offsets of partitions are inclusive, but for high watermarks; times
are in milliseconds since the epoch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

APPLICATION_ID = 0x746B6463
VERSION = 1
"""To be raised with every change of the tables, and of what a record does to them."""

_TABLES = (
    # One row: which log this is the state of, how much of it was applied, and the last record that was.
    """CREATE TABLE applied (
        log TEXT NOT NULL, next_offset INTEGER NOT NULL, last_record BLOB, next_batch_id INTEGER NOT NULL)""",
    """CREATE TABLE partitions (
        id INTEGER PRIMARY KEY, topic_id TEXT NOT NULL, partition INTEGER NOT NULL, name TEXT NOT NULL,
        log_start_offset INTEGER NOT NULL, high_watermark INTEGER NOT NULL, UNIQUE (topic_id, partition))""",
    # released_ms: since when none of its batches is live; NULL while some are.
    """CREATE TABLE files (
        id INTEGER PRIMARY KEY, object_key TEXT NOT NULL UNIQUE, format INTEGER NOT NULL, size INTEGER NOT NULL,
        uploader_broker_id INTEGER NOT NULL, owner_ids TEXT NOT NULL, committed_ms INTEGER NOT NULL,
        live_batches INTEGER NOT NULL, released_ms INTEGER)""",
    "CREATE INDEX live_files_by_age ON files (committed_ms) WHERE released_ms IS NULL",
    "CREATE INDEX released_files ON files (released_ms) WHERE released_ms IS NOT NULL",
    # In the order in which they are fetched; no other index, since this is nearly all of the state.
    """CREATE TABLE batches (
        partition INTEGER NOT NULL, last_offset INTEGER NOT NULL, base_offset INTEGER NOT NULL,
        batch_id INTEGER NOT NULL, file INTEGER NOT NULL, byte_offset INTEGER NOT NULL, byte_size INTEGER NOT NULL,
        magic INTEGER NOT NULL, timestamp_type INTEGER NOT NULL, log_append_timestamp INTEGER NOT NULL,
        batch_max_timestamp INTEGER NOT NULL, PRIMARY KEY (partition, last_offset)) WITHOUT ROWID""",
    # The last five batches of each idempotent producer, all of its latest epoch. They outlive the batches themselves.
    # log_append_timestamp: -1 where the batch keeps its producer's times.
    """CREATE TABLE producer_batches (
        partition INTEGER NOT NULL, producer_id INTEGER NOT NULL, base_offset INTEGER NOT NULL,
        producer_epoch INTEGER NOT NULL, base_sequence INTEGER NOT NULL, last_sequence INTEGER NOT NULL,
        log_append_timestamp INTEGER NOT NULL, PRIMARY KEY (partition, producer_id, base_offset)) WITHOUT ROWID""",
)

_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
_PRIMARY_CODE = 0xFF
_OF_THE_FILE = (
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT),
    *(sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH),
)


class StateUnusable(Exception):
    """A database that is not trusted; the text says why. What it was made of is to be applied again."""


def create_state(file: Path, log: str) -> sqlite3.Connection:
    """An empty state of the log of that name, in a file that must not exist yet."""
    file.touch(mode=0o600, exist_ok=False)
    connection = _open(file)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for table in _TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO applied VALUES (?, 0, NULL, 0)", (log,))
    connection.execute("COMMIT")
    _prepare(connection)
    return connection


def connect(file: Path, log: str) -> sqlite3.Connection:
    """A connection to the state of the log of that name, to be used by one thread at a time. Whoever writes begins
    transactions itself. Raises StateUnusable for any other database, which is not changed."""
    connection = _open(file)
    try:
        with distrusted():
            demand_schema(connection, log)
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def demand_schema(connection: sqlite3.Connection, log: str) -> None:
    """Raises StateUnusable unless this is a state of the log of that name, in tables as they are here."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise StateUnusable("it is another program's database")
    if version != VERSION:
        raise StateUnusable(f"its schema has version {version}, not {VERSION}")
    if connection.execute(_SCHEMA).fetchall() != _schema():
        raise StateUnusable("it has other tables")
    of = [name for (name,) in connection.execute("SELECT log FROM applied")]
    if of != [log]:
        raise StateUnusable(f"it is the state of {', '.join(of) or 'no log'}, not of {log}")


def next_offset(connection: sqlite3.Connection) -> int:
    """The offset of the first record of the log that was not applied."""
    (offset,) = connection.execute("SELECT next_offset FROM applied").fetchone()
    return int(offset)


@contextmanager
def distrusted() -> Iterator[None]:
    """What SQLite reports of a file that is not what it should be, as StateUnusable; a full disk or a lock stays what
    it is."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & _PRIMARY_CODE not in _OF_THE_FILE:
            raise
        raise StateUnusable(str(error)) from None


@cache
def _schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for table in _TABLES:
            connection.execute(table)
        return connection.execute(_SCHEMA).fetchall()


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # A power cut may take the last transactions, together with the offsets stored in them: the log still has both.
    connection.execute("PRAGMA synchronous = NORMAL")

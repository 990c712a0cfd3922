"""A coordinator as one would write it first: each check a query, each row a statement, SQLite as it comes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tieredctl_proposals.model.diskless_requests import CommitBatch, CommitFile

_TABLES = """
CREATE TABLE logs (topic_id TEXT, partition INTEGER, log_start_offset INTEGER, high_watermark INTEGER,
    PRIMARY KEY (topic_id, partition));
CREATE TABLE files (file_id INTEGER PRIMARY KEY AUTOINCREMENT, object_key TEXT UNIQUE, size INTEGER);
CREATE TABLE batches (batch_id INTEGER PRIMARY KEY AUTOINCREMENT, topic_id TEXT, partition INTEGER, base_offset INTEGER,
    last_offset INTEGER, file_id INTEGER, byte_offset INTEGER, byte_size INTEGER, magic INTEGER, timestamp_type INTEGER,
    log_append_timestamp INTEGER, batch_max_timestamp INTEGER);
CREATE INDEX batches_by_offset ON batches (topic_id, partition, last_offset);
CREATE INDEX batches_by_file ON batches (file_id);
CREATE TABLE producer_state (row_id INTEGER PRIMARY KEY AUTOINCREMENT, topic_id TEXT, partition INTEGER,
    producer_id INTEGER, producer_epoch INTEGER, base_sequence INTEGER, last_sequence INTEGER, assigned_offset INTEGER);
CREATE INDEX producers ON producer_state (topic_id, partition, producer_id, row_id);
"""


class NaiveCoordinator:
    """Commits files, and nothing else."""

    def __init__(self, file: Path, *, in_transactions: bool) -> None:
        self._in_transactions = in_transactions
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.executescript(_TABLES)

    def close(self) -> None:
        self._connection.close()

    def create_partitions(self, topic_id: str, number: int) -> None:
        self._connection.execute("BEGIN")
        for partition in range(number):
            self._connection.execute("INSERT INTO logs VALUES (?, ?, 0, 0)", (topic_id, partition))
        self._connection.execute("COMMIT")

    def commit_file(self, request: CommitFile, now_ms: int) -> None:
        """Raises ValueError for a batch out of order: the benchmark has none."""
        execute = self._connection.execute
        if self._in_transactions:
            execute("BEGIN")
        values = (request.object_key, request.file_size)
        file_id = execute("INSERT INTO files (object_key, size) VALUES (?, ?)", values).lastrowid
        for batch in request.batches:
            self._commit(batch, file_id, now_ms)
        if self._in_transactions:
            execute("COMMIT")

    def _commit(self, batch: CommitBatch, file_id: int | None, now_ms: int) -> None:
        execute = self._connection.execute
        place = (batch.topic_id, batch.partition)
        (base,) = execute("SELECT high_watermark FROM logs WHERE topic_id = ? AND partition = ?", place).fetchone()
        last = base + batch.last_offset - batch.base_offset
        if batch.producer_id >= 0:
            of_producer = "FROM producer_state WHERE topic_id = ? AND partition = ? AND producer_id = ?"
            producer = (*place, batch.producer_id)
            last_five = execute(f"SELECT * {of_producer} ORDER BY row_id DESC LIMIT 5", producer).fetchall()
            if last_five and last_five[0][6] + 1 != batch.base_sequence:
                raise ValueError("out of order")
            execute(
                "INSERT INTO producer_state VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                (*producer, batch.producer_epoch, batch.base_sequence, batch.last_sequence, base),
            )
            if len(last_five) == 5:
                execute("DELETE FROM producer_state WHERE row_id = ?", (last_five[-1][0],))
        execute("UPDATE logs SET high_watermark = ? WHERE topic_id = ? AND partition = ?", (last + 1, *place))
        row = (*place, base, last, file_id, batch.byte_offset, batch.byte_size, batch.magic, batch.timestamp_type)
        execute(
            "INSERT INTO batches VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, now_ms, batch.batch_max_timestamp_ms),
        )

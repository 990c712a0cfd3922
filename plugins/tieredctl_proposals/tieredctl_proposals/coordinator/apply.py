"""What replicated records do to the state: leader, followers and recovery change it in this way alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice

from tieredctl_proposals.coordinator.metadata_log import LoggedRecord
from tieredctl_proposals.formats.diskless_records import encode_diskless_record
from tieredctl_proposals.model.diskless_records import (
    LOG_APPEND_TIME,
    NO_PRODUCER,
    DisklessRecord,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
)

REMEMBERED_BATCHES = 5
"""How many batches of each producer are remembered, as ProducerStateEntry.NUM_BATCHES_TO_RETAIN."""
NO_TIMESTAMP = -1
RECORDS_AT_ONCE = 100
"""How many records a transaction holds at most, so that neither it nor what it keeps in memory grows without bound."""
_ALL = (1 << 63) - 1

_PROGRESS = "SELECT next_offset, next_batch_id FROM applied"
_SET_PROGRESS = "UPDATE applied SET next_offset = ?, next_batch_id = ?, last_record = ? WHERE next_offset = ?"
_PARTITION = "SELECT id, log_start_offset, high_watermark FROM partitions WHERE topic_id = ? AND partition = ?"
_ADD_PARTITION = "INSERT INTO partitions VALUES (?, ?, ?, ?, 0, 0)"
_SET_OFFSETS = "UPDATE partitions SET log_start_offset = ?, high_watermark = ? WHERE id = ?"
_ADD_FILE = "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_BATCH = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_PRODUCER_BATCH = "INSERT INTO producer_batches VALUES (?, ?, ?, ?, ?, ?, ?)"
_FORGET_PRODUCER_BATCHES = f"""
    DELETE FROM producer_batches WHERE partition = ?1 AND producer_id = ?2 AND (producer_epoch < ?3 OR base_offset < (
        SELECT base_offset FROM producer_batches WHERE partition = ?1 AND producer_id = ?2
        ORDER BY base_offset DESC LIMIT 1 OFFSET {REMEMBERED_BATCHES - 1}))"""
_RELEASE = """
    UPDATE files SET live_batches = live_batches - gone.number,
        released_ms = CASE live_batches WHEN gone.number THEN ?3 END
    FROM (SELECT file, count(*) AS number FROM batches WHERE partition = ?1 AND last_offset < ?2 GROUP BY file) AS gone
    WHERE files.id = gone.file"""
_DELETE_BATCHES = "DELETE FROM batches WHERE partition = ? AND last_offset < ?"


class DoesNotFit(Exception):
    """A record that contradicts the state it comes upon. Log or state is not what it should be."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(f"offset {offset} {why}")
        self.offset, self.why = offset, why


class Applier:
    """Applies records to one state, and remembers the partitions that they concern.

    What a transaction adds is kept in memory and written in bulk, before something is deleted and in the end.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._forget()
        self.next_offset, self._next_batch_id = connection.execute(_PROGRESS).fetchone()

    def apply(self, logged: Iterable[LoggedRecord]) -> None:
        """Applies records in one transaction, with the offset that follows them.

        Raises DoesNotFit for the first that cannot be; the state is then as it was before all of them.
        """
        record, began_at = None, self.next_offset
        with self._transaction():
            for offset, timestamp_ms, record in logged:
                if offset != self.next_offset:
                    raise DoesNotFit(offset, f"does not follow {self.next_offset - 1}")
                self._apply(offset, timestamp_ms, record)
                self.next_offset += 1
            if record is not None:
                self._write()
                progress = (self.next_offset, self._next_batch_id, digest(record), began_at)
                if self._connection.execute(_SET_PROGRESS, progress).rowcount != 1:
                    raise DoesNotFit(began_at, "was applied by another process that writes to this state")

    def catch_up(self, logged: Iterator[LoggedRecord]) -> None:
        """Applies however many records in as many transactions as they need. Raises DoesNotFit as `apply` does."""
        while chunk := list(islice(logged, RECORDS_AT_ONCE)):
            self.apply(chunk)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        began_at = self.next_offset, self._next_batch_id
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self.next_offset, self._next_batch_id = began_at
            self._partitions.clear()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        finally:
            self._forget()

    def _forget(self) -> None:
        self._changed: set[_Partition] = set()
        self._batches: list[tuple[int, ...]] = []
        self._producer_batches: list[tuple[int, ...]] = []

    def _apply(self, offset: int, timestamp_ms: int, record: DisklessRecord) -> None:
        if isinstance(record, FileCommitted):
            self._commit(offset, timestamp_ms, record)
        elif isinstance(record, PartitionCreated):
            self._create(offset, record)
        elif isinstance(record, RecordsDeleted):
            self._delete_records(offset, timestamp_ms, record)
        else:
            self._delete_topic(offset, timestamp_ms, record)

    def _create(self, offset: int, record: PartitionCreated) -> None:
        try:
            self._connection.execute(_ADD_PARTITION, (offset, record.topic_id, record.partition, record.topic))
        except sqlite3.IntegrityError:
            raise DoesNotFit(offset, "creates a partition that is there") from None

    def _commit(self, offset: int, timestamp_ms: int, record: FileCommitted) -> None:
        owners = ",".join(map(str, record.owner_ids))
        number = len(record.batches)
        released_ms = None if number else timestamp_ms
        described = (record.object_key, record.object_format, record.file_size, record.uploader_broker_id, owners)
        try:
            self._connection.execute(_ADD_FILE, (offset, *described, timestamp_ms, number, released_ms))
        except sqlite3.IntegrityError:
            raise DoesNotFit(offset, f"commits file {record.object_key}, which is there") from None
        of, partition = None, None
        for batch in record.batches:
            if of != batch[:2] or partition is None:
                of = batch[:2]
                partition = self._partition(offset, *of)
                self._changed.add(partition)
            (_, _, magic, at, size, base, last, appended, newest, timestamp_type, producer, epoch, first, final) = batch
            if base != partition.high_watermark:
                raise DoesNotFit(offset, f"assigns {base} where {partition.high_watermark} is next")
            partition.high_watermark = last + 1
            number, self._next_batch_id = self._next_batch_id, self._next_batch_id + 1
            row = (partition.id, last, base, number, offset, at, size, magic, timestamp_type, appended, newest)
            self._batches.append(row)
            if producer != NO_PRODUCER:
                answered = appended if timestamp_type == LOG_APPEND_TIME else NO_TIMESTAMP
                self._producer_batches.append((partition.id, producer, base, epoch, first, final, answered))

    def _delete_records(self, offset: int, timestamp_ms: int, record: RecordsDeleted) -> None:
        partition = self._partition(offset, record.topic_id, record.partition)
        start = record.log_start_offset
        if not partition.log_start_offset <= start <= partition.high_watermark:
            raise DoesNotFit(offset, f"begins partition {record.partition} at {start}, outside its offsets")
        partition.log_start_offset = start
        self._changed.add(partition)
        self._write()
        self._delete_batches(partition.id, start, timestamp_ms)

    def _delete_topic(self, offset: int, timestamp_ms: int, record: TopicDeleted) -> None:
        self._write()
        of_topic = "FROM partitions WHERE topic_id = ?"
        deleted = self._connection.execute(f"SELECT id, partition {of_topic}", (record.topic_id,)).fetchall()
        if not deleted:
            raise DoesNotFit(offset, f"deletes topic {record.topic_id}, which is not there")
        for identifier, partition in deleted:
            self._delete_batches(identifier, _ALL, timestamp_ms)
            self._connection.execute("DELETE FROM producer_batches WHERE partition = ?", (identifier,))
            self._partitions.pop((record.topic_id, partition), None)
        self._connection.execute(f"DELETE {of_topic}", (record.topic_id,))

    def _delete_batches(self, partition: int, before: int, timestamp_ms: int) -> None:
        self._connection.execute(_RELEASE, (partition, before, timestamp_ms))
        self._connection.execute(_DELETE_BATCHES, (partition, before))

    def _partition(self, offset: int, topic_id: str, number: int) -> _Partition:
        partition = self._partitions.get((topic_id, number))
        if partition is None:
            row = self._connection.execute(_PARTITION, (topic_id, number)).fetchone()
            if row is None:
                raise DoesNotFit(offset, f"is about partition {number} of {topic_id}, which is not there")
            partition = self._partitions[topic_id, number] = _Partition(*row)
        return partition

    def _write(self) -> None:
        """Writes what was kept in memory."""
        offsets = [(each.log_start_offset, each.high_watermark, each.id) for each in self._changed]
        self._connection.executemany(_SET_OFFSETS, offsets)
        self._connection.executemany(_ADD_BATCH, self._batches)
        self._connection.executemany(_ADD_PRODUCER_BATCH, self._producer_batches)
        epochs = {(partition, producer): epoch for partition, producer, _, epoch, *_ in self._producer_batches}
        self._connection.executemany(_FORGET_PRODUCER_BATCHES, [(*key, epoch) for key, epoch in epochs.items()])
        self._forget()


class _Partition:
    """A row of `partitions`; two are equal only if they are the same."""

    __slots__ = ("high_watermark", "id", "log_start_offset")

    def __init__(self, identifier: int, log_start_offset: int, high_watermark: int) -> None:
        self.id = identifier
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


def digest(record: DisklessRecord) -> bytes:
    """What is kept of the last record that was applied, to tell a log from another with the same name."""
    return sha256(encode_diskless_record(record)).digest()

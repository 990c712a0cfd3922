"""The state as it will be once everything that is pending has been replicated and applied.

Checks are made against it, and change it, before a record is appended (KIP-1164, "How operations are performed"). It is
held in memory, over the database: what no pending operation has changed is read from there when it is asked for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from tieredctl_proposals.coordinator.producers import Producer, RememberedBatch

_TOPIC = "SELECT name, id, partition, log_start_offset, high_watermark FROM partitions WHERE topic_id = ?"
_PRODUCER = """
    SELECT producer_epoch, base_offset, base_sequence, last_sequence, log_append_timestamp FROM producer_batches
    WHERE partition = ? AND producer_id = ? ORDER BY base_offset"""

KEPT_IN_MEMORY = 100_000


@dataclass(slots=True)
class PendingPartition:
    """A partition's offsets, and those of its producers that were asked for."""

    stored_as: int | None
    """Its id in the database; None while its creation is pending."""
    log_start_offset: int = 0
    high_watermark: int = 0
    producers: dict[int, Producer] = field(default_factory=dict)
    not_producing: set[int] = field(default_factory=set)
    """Producers of which the database has nothing."""


@dataclass(slots=True)
class PendingTopic:
    """A topic and its partitions by number."""

    name: str
    partitions: dict[int, PendingPartition]


class PendingState:
    """What a coordinator checks against. Used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, limit: int) -> None:
        """`limit`: how many partitions and producers are kept in memory, not counting what is pending."""
        self._connection = connection
        self._limit = limit
        self._topics: dict[str, PendingTopic | None] = {}
        self._changed_before: dict[str, int] = {}
        """The end of the last pending operation on each topic."""
        self._files: dict[str, int] = {}
        self._changed: set[str] = set()
        self._loaded = 0

    def topic(self, topic_id: str) -> PendingTopic | None:
        """A topic; None where there is none. To be followed by `changed` if the caller changes it."""
        if topic_id not in self._topics:
            rows = self._connection.execute(_TOPIC, (topic_id,)).fetchall()
            partitions = {row[2]: PendingPartition(row[1], row[3], row[4]) for row in rows}
            self._topics[topic_id] = PendingTopic(rows[0][0], partitions) if rows else None
            self._loaded += 1 + len(partitions)
        return self._topics[topic_id]

    def producer(self, partition: PendingPartition, producer_id: int) -> Producer | None:
        """A producer in a partition; None where it has not produced to it."""
        producer = partition.producers.get(producer_id)
        if producer is not None or partition.stored_as is None or producer_id in partition.not_producing:
            return producer
        self._loaded += 1
        rows = self._connection.execute(_PRODUCER, (partition.stored_as, producer_id)).fetchall()
        if not rows:
            partition.not_producing.add(producer_id)
            return None
        producer = partition.producers[producer_id] = Producer(rows[0][0])
        producer.batches.extend(RememberedBatch(*row[1:]) for row in rows)
        return producer

    def remember(self, partition: PendingPartition, producer_id: int, epoch: int, batch: RememberedBatch) -> None:
        """A producer's batch was accepted; the caller has looked at the producer."""
        producer = partition.producers.get(producer_id)
        if producer is None:
            self._loaded += 1
            producer = partition.producers[producer_id] = Producer(epoch)
            partition.not_producing.discard(producer_id)
        producer.accept(epoch, batch)

    def has_file(self, object_key: str) -> bool:
        """Whether a file of that key was committed, and not forgotten since."""
        return object_key in self._files or file_is_known(self._connection, object_key)

    def create(self, topic_id: str, name: str, partitions: Iterable[int]) -> None:
        """Adds partitions, and the topic where it is new."""
        topic = self.topic(topic_id)
        if topic is None:
            topic = self._topics[topic_id] = PendingTopic(name, {})
        topic.partitions |= {number: PendingPartition(None) for number in partitions}
        self.changed(topic_id)

    def delete(self, topic_id: str) -> None:
        """Takes a topic away."""
        self._topics[topic_id] = None
        self.changed(topic_id)

    def changed(self, topic_id: str) -> None:
        """A topic is no longer as the database has it."""
        self._changed.add(topic_id)

    def appended(self, end: int, object_keys: Iterable[str] = ()) -> None:
        """The records of all changes since the last call were appended, and end before that offset of the log."""
        self._changed_before |= dict.fromkeys(self._changed, end)
        self._changed.clear()
        self._files |= dict.fromkeys(object_keys, end)

    def applied(self, next_offset: int) -> None:
        """The database has everything before that offset."""
        if self._files:
            self._files = {key: end for key, end in self._files.items() if end > next_offset}
        if self._loaded > self._limit:
            self._changed_before = {topic: end for topic, end in self._changed_before.items() if end > next_offset}
            self._topics = {topic: value for topic, value in self._topics.items() if topic in self._changed_before}
            self._loaded = 0


def file_is_known(connection: sqlite3.Connection, object_key: str) -> bool:
    """Whether the database has a file."""
    return connection.execute("SELECT 1 FROM files WHERE object_key = ?", (object_key,)).fetchone() is not None

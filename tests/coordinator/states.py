"""States of coordinators made for a test."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

from tieredctl_proposals.coordinator.machine import Coordinator, Operation
from tieredctl_proposals.coordinator.recovery import Recovered, recover
from tieredctl_proposals.model.diskless_requests import (
    BatchResult,
    CommitBatch,
    CommitFile,
    CreatablePartitions,
    CreatePartitions,
)

from tests.coordinator.memory_log import MemoryLog
from tieredctl.model.ids import uuid_text

TOPIC_ID, OTHER_TOPIC_ID = uuid_text(b"\1" * 16), uuid_text(b"\2" * 16)
NOW_MS = 1_700_000_000_000
COORDINATOR, BROKER = 0, 1
T = TypeVar("T")


class Served:
    """A coordinator of a topic with two partitions, whose log is in memory and replicated at once."""

    def __init__(self, folder: Path, log: MemoryLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.file = folder / "state.sqlite"
        self.snapshots = folder / "snapshots"
        self.open()
        if not self.log.end_offset:
            self.finished(
                self.coordinator.create_partitions(CreatePartitions((CreatablePartitions(TOPIC_ID, "t", 2),)))
            )

    def open(self) -> Recovered:
        recovered = recover(self.file, self.log, self.snapshots)
        self.connection: sqlite3.Connection = recovered.connection
        self.coordinator = Coordinator(COORDINATOR, self.log, self.connection, lambda: NOW_MS)
        return recovered

    def reopen(self) -> Recovered:
        self.connection.close()
        return self.open()

    def finished(self, operation: Operation[T]) -> T:
        """An operation's answer, once it is replicated."""
        self.log.replicate()
        self.coordinator.poll()
        return operation.answer

    def commit(self, key: str, *batches: CommitBatch) -> tuple[BatchResult, ...]:
        """Commits a file, and returns what became of its batches."""
        return self.finished(self.coordinator.commit_file(a_file(key, *batches), BROKER)).batches


def a_file(key: str, *batches: CommitBatch) -> CommitFile:
    """A file of these batches, one after the other, that this coordinator alone owns."""
    placed = []
    position = 0
    for batch in batches:
        placed.append(batch._replace(byte_offset=position))
        position += batch.byte_size
    return CommitFile(key, position, (COORDINATOR,), tuple(placed))


def a_batch(records: int = 1, partition: int = 0, topic_id: str = TOPIC_ID, **changes: Any) -> CommitBatch:
    """A batch of 100 bytes without a producer."""
    return CommitBatch(topic_id, partition, 0, 100, 0, records - 1, NOW_MS - 10)._replace(**changes)


def produced(first: int, records: int = 1, epoch: int = 0, producer: int = 7, **changes: Any) -> CommitBatch:
    """A batch of an idempotent producer that begins with sequence number `first`."""
    last = (first + records - 1) % 2**31
    fields: dict[str, Any] = {
        "producer_id": producer,
        "producer_epoch": epoch,
        "base_sequence": first,
        "last_sequence": last,
    }
    return a_batch(records, **fields | changes)

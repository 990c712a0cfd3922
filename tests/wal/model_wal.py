"""A metadata topic and a store for tests: steps are done one at a time, and may stop between any two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from tieredctl_proposals.formats.wal_records import encode_wal_event
from tieredctl_proposals.wal.events import WalChunk, WalEvents
from tieredctl_proposals.wal.replayed import ReplayedWal
from tieredctl_proposals.wal.sections import QueueItem, queue_item
from tieredctl_proposals.wal.steps import DeleteObject, Publish, PutObject, Step
from tieredctl_proposals.wal.upload import upload_steps

from tests.metadata_logs import FIRST_TIMESTAMP_MS, segment_id
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.model.ids import TopicIdPartition
from tieredctl.storage.memory import MemoryStore

METADATA_PARTITIONS = 3


@dataclass
class ModelWal:
    """The events of each metadata partition as bytes, and the objects."""

    store: MemoryStore = field(default_factory=MemoryStore)
    topic: list[list[bytes]] = field(default_factory=lambda: [[] for _ in range(METADATA_PARTITIONS)])
    now_ms: int = FIRST_TIMESTAMP_MS

    def clock_ms(self) -> int:
        return self.now_ms

    def do(self, steps: Iterable[Step], most: int | None = None) -> int:
        """Does steps, at most so many; returns how many."""
        done = 0
        for step in islice(steps, most):
            done += 1
            if isinstance(step, Publish):
                self.topic[step.metadata_partition].append(encode_wal_event(step.event))
            elif isinstance(step, PutObject):
                self.store.put(step.key, step.data, self.now_ms)
            else:
                assert isinstance(step, DeleteObject)
                stored = self.store.head(step.key)
                self.store.delete([stored] if stored else [])
        return done

    def replayed(self) -> ReplayedWal:
        events = WalEvents()
        for number, values in enumerate(self.topic):
            events.take(chunk_of(number, list(enumerate(values))))
        return ReplayedWal(events)

    def stored_keys(self) -> list[str]:
        return [one.key for one in self.store.list()]


def chunk_of(partition: int, records: list[tuple[int, bytes]]) -> WalChunk:
    lengths = np.array([len(value) for _, value in records], np.int64)
    ends = np.cumsum(lengths)
    offsets = np.array([offset for offset, _ in records], np.int64)
    data = np.frombuffer(b"".join(value for _, value in records), np.uint8)
    return WalChunk(partition, offsets, offsets + FIRST_TIMESTAMP_MS, data, ends - lengths, ends)


def batch(first: int, last: int, leader_epoch: int = 0, timestamp_ms: int = FIRST_TIMESTAMP_MS, size: int = 5) -> bytes:
    """One batch with a record for each offset."""
    records = [Record(offset, timestamp_ms, None, b"v" * size) for offset in range(first, last + 1)]
    return encode_batch(records, partition_leader_epoch=leader_epoch)


def item(
    number: int, partition: TopicIdPartition, first: int, last: int, leader_epoch: int = 0, records: bytes = b""
) -> QueueItem:
    """What a leader queues: by default one batch."""
    return queue_item(
        partition,
        segment_id(number),
        records or batch(first, last, leader_epoch),
        broker_id=1,
        leader_epoch=leader_epoch,
        event_timestamp_ms=FIRST_TIMESTAMP_MS,
    )


def uploading(wal: ModelWal, items: list[QueueItem], combined: int, broker_id: int = 1) -> Iterable[Step]:
    return upload_steps(
        items,
        segment_id(combined),
        broker_id=broker_id,
        metadata_partitions=METADATA_PARTITIONS,
        clock_ms=wal.clock_ms,
    )

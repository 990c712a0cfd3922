"""What `__diskless_metadata` holds: the records of KIP-1164's coordinators, one for each of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tieredctl.model.events import TaggedField

DISKLESS_METADATA_TOPIC = "__diskless_metadata"
WRITE_AHEAD_MULTI_SEGMENT = 1
"""The format of an object that mixes batches of many partitions: the only one that the proposal names."""
NO_PRODUCER = -1
"""Producer id, epoch and sequences of a batch without an idempotent producer."""
CREATE_TIME, LOG_APPEND_TIME = 0, 1
"""Timestamp types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCreated:
    """A partition that this coordinator has from now on. Raises ValueError for what no partition can be."""

    topic_id: str
    topic: str
    partition: int
    tagged_fields: tuple[TaggedField, ...] = ()

    def __post_init__(self) -> None:
        _demand_partition(self.partition)
        if not self.topic:
            raise ValueError("a topic without a name")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted:
    """All partitions of a topic and all their batches are gone."""

    topic_id: str
    tagged_fields: tuple[TaggedField, ...] = ()


class CommittedBatch(NamedTuple):
    """A record batch that was accepted. Offsets are inclusive, sizes and positions are bytes, times are milliseconds
    since the epoch; the four fields of the producer are NO_PRODUCER where it has none."""

    topic_id: str
    partition: int
    magic: int
    byte_offset: int
    """Where it begins in the file."""
    byte_size: int
    base_offset: int
    last_offset: int
    log_append_timestamp_ms: int
    """When the coordinator accepted it."""
    batch_max_timestamp_ms: int
    timestamp_type: int
    """CREATE_TIME or LOG_APPEND_TIME."""
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    base_sequence: int = NO_PRODUCER
    last_sequence: int = NO_PRODUCER


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCommitted:
    """A file with the batches of it that this coordinator accepted.

    Those of a partition stand together, as do those of a topic (`together`). `owner_ids` are the coordinators that have
    batches in the file, in the order in which they own it. Raises ValueError for what no file can have.
    """

    object_key: str
    file_size: int
    """In bytes."""
    uploader_broker_id: int
    owner_ids: tuple[int, ...]
    batches: tuple[CommittedBatch, ...]
    object_format: int = WRITE_AHEAD_MULTI_SEGMENT
    tagged_fields: tuple[TaggedField, ...] = ()

    def __post_init__(self) -> None:
        if not self.object_key:
            raise ValueError("a file without an object key")
        if self.file_size < 0:
            raise ValueError(f"impossible file size {self.file_size}")
        if not self.owner_ids or min(self.owner_ids) < 0 or len(set(self.owner_ids)) < len(self.owner_ids):
            raise ValueError(f"impossible owners {list(self.owner_ids)}")
        for batch in self.batches:
            _demand_possible(batch, self.file_size)
        if together(self.batches) != self.batches:
            raise ValueError("batches of a partition that do not stand together")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsDeleted:
    """A partition's new log start offset: all batches whose last offset is less are gone. Raises ValueError for what no
    partition can have."""

    topic_id: str
    partition: int
    log_start_offset: int
    tagged_fields: tuple[TaggedField, ...] = ()

    def __post_init__(self) -> None:
        _demand_partition(self.partition)
        if self.log_start_offset < 0:
            raise ValueError(f"impossible log start offset {self.log_start_offset}")


DisklessRecord = PartitionCreated | TopicDeleted | FileCommitted | RecordsDeleted


def together(batches: Iterable[CommittedBatch]) -> tuple[CommittedBatch, ...]:
    """Batches in the order of a FileCommitted: each topic and each partition where it comes first, its batches in the
    order given."""
    topics: dict[str, dict[int, list[CommittedBatch]]] = {}
    for batch in batches:
        topics.setdefault(batch.topic_id, {}).setdefault(batch.partition, []).append(batch)
    return tuple(batch for partitions in topics.values() for of_one in partitions.values() for batch in of_one)


def _demand_partition(partition: int) -> None:
    if partition < 0:
        raise ValueError(f"impossible partition {partition}")


def _demand_possible(batch: CommittedBatch, file_size: int) -> None:
    _demand_partition(batch.partition)
    start, end = batch.byte_offset, batch.byte_offset + batch.byte_size
    if not 0 <= start < end <= file_size:
        raise ValueError(f"bytes {start} to {end} of a file of {file_size}")
    if not 0 <= batch.base_offset <= batch.last_offset:
        raise ValueError(f"impossible offsets {batch.base_offset} to {batch.last_offset}")
    if batch.timestamp_type not in (CREATE_TIME, LOG_APPEND_TIME):
        raise ValueError(f"unknown timestamp type {batch.timestamp_type}")
    producer = (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence)
    if min(producer) < 0 and set(producer) != {NO_PRODUCER}:
        raise ValueError("impossible producer {}, epoch {}, sequences {} to {}".format(*producer))

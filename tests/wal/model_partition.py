"""A user partition: its leader's log in batches, its line of leaders, and what KIP-405's tier has of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl_proposals.wal.lifecycle import PartitionFacts

from tests.cache_by_events import CacheByEvents, said_once
from tests.metadata_logs import COPIED, started, updated
from tests.wal.model_wal import batch
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog


class ModelBatch(NamedTuple):
    first: int
    last: int
    leader_epoch: int
    data: bytes


@dataclass
class ModelPartition:
    partition: TopicIdPartition
    is_tiered: bool = True
    retention_ms: int = 1_000
    leader_epoch: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    log: list[ModelBatch] = field(default_factory=list)
    log_start: int = 0
    local_start: int = 0
    tiered: CacheByEvents = field(default_factory=CacheByEvents)
    tiered_ranges: list[tuple[int, int, int]] = field(default_factory=list)
    """(leader epoch, first, last), all that was ever tiered."""

    @property
    def end(self) -> int:
        return self.log[-1].last + 1 if self.log else 0

    @property
    def tiered_end(self) -> int:
        return max((last for _, _, last in self.tiered_ranges), default=-1) + 1

    @property
    def leader(self) -> LeaderLog:
        return LeaderLog(self.log_start, self.local_start, self.end, self.epochs)

    @property
    def facts(self) -> PartitionFacts:
        return PartitionFacts(self.log_start, is_tiered=self.is_tiered, local_retention_ms=self.retention_ms)

    def append(self, records: int, timestamp_ms: int) -> None:
        first, last = self.end, self.end + records - 1
        self.log.append(ModelBatch(first, last, self.leader_epoch, batch(first, last, self.leader_epoch, timestamp_ms)))

    def batches(self, start: int) -> list[ModelBatch]:
        return [one for one in self.log if one.last >= start]

    def tier(self, batches: int) -> None:
        """KIP-405 copies the next batches, as a segment."""
        due = [one for one in self.log if one.first >= self.tiered_end][:batches]
        if not due:
            return
        begins = dict(reversed([(one.leader_epoch, one.first) for one in due]))
        number = 10_000 + len(self.tiered_ranges)
        segment = started(number, due[0].first, due[-1].last, dict(sorted(begins.items())), partition=self.partition)
        self.tiered.add(said_once(segment))
        self.tiered.update(updated(number, COPIED, partition=self.partition), 0, 0)
        self.tiered_ranges += segment.epoch_ranges()

    def delete_local(self, batches: int) -> None:
        """Local retention takes what is tiered."""
        for one in [one for one in self.log if one.first >= self.local_start][:batches]:
            if one.last < self.tiered_end:
                self.local_start = one.last + 1

    def move_log_start(self, offset: int) -> None:
        """Retention, or DeleteRecords: up to an offset where a batch begins."""
        starts = [one.first for one in self.log if one.first <= offset]
        self.log_start = max(self.log_start, *starts, 0) if starts else self.log_start
        self.local_start = max(self.local_start, self.log_start)

    def elect(self, lost_batches: int) -> None:
        """Another leader, whose log ends earlier by some batches: never inside what is tiered, or gone from disks."""
        for _ in range(lost_batches):
            if self.log and self.log[-1].first >= max(self.tiered_end, self.local_start):
                self.log.pop()
        self.leader_epoch += 1
        self.epochs = [one for one in self.epochs if one[1] < self.end] + [(self.leader_epoch, self.end)]

    def is_safe_elsewhere(self, one: ModelBatch) -> bool:
        """Whether no reader needs a batch from the WAL tier."""
        return one.last < self.log_start or one.last < self.tiered_end

    def lineage(self) -> Iterator[ModelBatch]:
        """What readers may ask for."""
        return (one for one in self.log if one.last >= self.log_start)

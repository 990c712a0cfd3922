"""A partition as a broker's disk has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tieredctl.model.ids import TopicIdPartition

LeaderEpochs = Sequence[tuple[int, int]]
"""(leader epoch, first offset of it), ascending: one line of succession."""


def epochs_from(leader_epochs: LeaderEpochs, start_offset: int) -> LeaderEpochs:
    """The epochs of a log that begins at an offset, the first cut to it (LeaderEpochFileCache.truncateFromStart)."""
    before = [epoch for epoch, offset in leader_epochs if offset <= start_offset]
    after = [(epoch, offset) for epoch, offset in leader_epochs if offset > start_offset]
    return [(before[-1], start_offset), *after] if before else after


ON_DISK = ""
"""In place of a segment id, for a segment on a broker's disk: only remote storage gives one."""


@dataclass(frozen=True, slots=True)
class LocalLog:
    """What a broker's log directory says about a partition.

    `local_start_offset` is the base of the first local segment; `log_start_offset` the first offset that consumers may
    read, wherever it is stored, None where the broker's checkpoint does not say.
    """

    leader_epochs: LeaderEpochs
    local_start_offset: int
    log_start_offset: int | None


@dataclass(frozen=True, slots=True)
class LeaderLog:
    """Where a leader's log begins, in remote storage and on its disk, and where it ends. All are offsets.

    `earliest_pending_upload_offset` is the first that is in no remote segment yet (ListOffsets -6, KIP-1023); None
    where the leader answers -1, or does not support the request.
    """

    log_start_offset: int
    local_log_start_offset: int
    end_offset: int
    """Exclusive: the offset of the next record."""
    leader_epochs: LeaderEpochs
    earliest_pending_upload_offset: int | None = None

    def __post_init__(self) -> None:
        if not self.log_start_offset <= self.local_log_start_offset <= self.end_offset:
            raise ValueError(f"not a log: {self}")


class LocalSegment(NamedTuple):
    """A segment's log: its base offset, its size in bytes, and what Kafka takes as its largest timestamp (ms)."""

    base_offset: int
    size: int
    largest_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LocalReplica:
    """A partition's folder in a log directory. `segments` are oldest first, the last one is active; `snapshot_offsets`
    are those of its producer snapshots: each covers everything before that offset."""

    partition: TopicIdPartition
    folder: str
    segments: Sequence[LocalSegment]
    snapshot_offsets: frozenset[int]

"""The segments of a partition as a broker's disk has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tieredctl.model.ids import TopicIdPartition


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

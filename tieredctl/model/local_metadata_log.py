"""What is known of the metadata log on one node: by its disk, or by its own answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class SeenSnapshot(NamedTuple):
    """A finished snapshot; `end_offset` is exclusive, `size` in bytes. Times in ms are None where its header is
    damaged: when it was begun to be written, and when the last record that it contains was."""

    end_offset: int
    epoch: int
    size: int
    written_ms: int | None
    last_contained_ms: int | None

    def __str__(self) -> str:
        return f"{self.end_offset}-{self.epoch}"


class SeenSegment(NamedTuple):
    """A segment of the log, and the bytes of its `.log`."""

    base_offset: int
    size: int


@dataclass(frozen=True, slots=True)
class SeenMetadataLog:
    """A node's snapshots and segments, the oldest first. By a leader's own answers there is its latest snapshot alone,
    and no segments: only its disk shows those."""

    node_id: int | None
    where: str
    """A folder, or the leader."""
    log_start_offset: int
    snapshots: Sequence[SeenSnapshot]
    segments: Sequence[SeenSegment] | None = None
    first_record_ms: int | None = None
    """When the first record of the log, or one of the first, was written; None where unknown."""

    @property
    def latest_snapshot(self) -> SeenSnapshot | None:
        return self.snapshots[-1] if self.snapshots else None

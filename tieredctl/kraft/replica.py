"""A node's replica of the metadata log: its snapshots, and the stretch of the log that it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tieredctl.formats.file_names import kraft_snapshot_name


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """What names a snapshot, in Kafka's order (OffsetAndEpoch): by epoch, then by end offset."""

    epoch: int
    """The epoch of the last record that it contains."""
    end_offset: int
    """Exclusive: the first offset that it does not contain."""

    @property
    def file_name(self) -> str:
        """The name of a finished snapshot."""
        return kraft_snapshot_name(self.end_offset, self.epoch)

    def __str__(self) -> str:
        return f"{self.end_offset}-{self.epoch}"


BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)
"""Holds the first voters (KIP-853); no follower is sent it (Snapshots.BOOTSTRAP_SNAPSHOT_ID)."""


class EpochStart(NamedTuple):
    """Where a leader epoch begins in the log."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class Replica:
    """What a node has of the metadata log."""

    log_start_offset: int
    log_end_offset: int
    """Exclusive: the offset that is written next."""
    epochs: Sequence[EpochStart]
    """The epochs of all records in the log, rising."""
    snapshots: Sequence[SnapshotId]
    """All that are finished, in their order."""

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0] if self.snapshots else None

    def as_started(self) -> Replica:
        """What a node makes of it when it starts: snapshots before the log's start go, and a log that ends before the
        latest snapshot is emptied (KafkaRaftLog.recoverSnapshots, truncateToLatestSnapshot)."""
        snapshots = [one for one in self.snapshots if one.end_offset >= self.log_start_offset]
        started = replace(self, snapshots=snapshots)
        latest, last_epoch = started.latest_snapshot, self.epochs[-1].epoch if self.epochs else 0
        if latest is None or latest <= SnapshotId(last_epoch, self.log_end_offset):
            return started
        return Replica(latest.end_offset, latest.end_offset, [], [latest])


class LastBatch(NamedTuple):
    """The log's batch that has the last record of a snapshot."""

    last_offset: int
    epoch: int
    timestamp: int
    """Its greatest (ms)."""


def disagreements(snapshot: SnapshotId, last_contained_ms: int | None, last: LastBatch) -> Iterator[str]:
    """How a snapshot, by its name and the time in its header (ms; None where unknown), contradicts the log.

    A controller ends a snapshot with a batch, names it after that batch's offset and epoch, and writes the batch's time
    into the header (KIP-630, Validation of Snapshot and Log).
    """
    offset = snapshot.end_offset - 1
    if last.last_offset != offset:
        yield f"offset {offset} is not the last of its batch in the log"
    if last.epoch != snapshot.epoch:
        yield f"offset {offset} is of epoch {last.epoch} in the log"
    if last_contained_ms not in (None, last.timestamp):
        yield f"its header says {last_contained_ms} ms for offset {offset}, the log {last.timestamp} ms"

"""Snapshots of coordinators' states, which say what pruned logs no longer do.

KIP-1164 snapshots and prunes as KRaft does, so a snapshot is looked for where KRaft has its own: in the folder of the
log. A state has every file that was ever committed and every live batch, so with the log after it nothing is missing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tieredctl_proposals.coordinator.schema import StateUnusable
from tieredctl_proposals.coordinator.snapshots import Snapshot, check_snapshot, restore_snapshot, snapshots
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC

Snapshots = Mapping[int, Sequence[Snapshot]]
"""The snapshots of each coordinator, newest first."""
_FOLDER = re.compile(re.escape(DISKLESS_METADATA_TOPIC) + r"-([0-9]{1,9})")
_LOG = "SELECT log FROM applied"
_LAST_RECORD = "SELECT last_record FROM applied"
_PARTITIONS = "SELECT id, topic_id, name, partition, log_start_offset, high_watermark FROM partitions ORDER BY id"
_TIMES = """
    SELECT (SELECT committed_ms FROM files ORDER BY id LIMIT 1), max(ifnull(released_ms, committed_ms)) FROM files"""
_FILES = "SELECT id, object_key, owner_ids, committed_ms FROM files ORDER BY id"
_HELD = """
    SELECT file, partition, max(last_offset), min(CASE WHEN log_append_timestamp >= 0 THEN log_append_timestamp END)
    FROM batches GROUP BY file, partition ORDER BY file, partition"""


class SnapshotPartition(NamedTuple):
    """A partition that a coordinator had; `id` is its own in the snapshot."""

    id: int
    topic_id: str
    topic: str
    partition: int
    log_start_offset: int
    high_watermark: int


class SnapshotFile(NamedTuple):
    """A file that a coordinator had, with live batches or without; its time in ms, by the coordinator's clock."""

    id: int
    object_key: str
    owner_ids: tuple[int, ...]
    committed_ms: int


class HeldOffsets(NamedTuple):
    """The last offset that a file holds of a partition, among live batches."""

    file: int
    partition: int
    last_offset: int
    oldest_ms: int | None
    """The earliest time that the coordinator gave one of these batches, if it gave any."""


class SnapshotContents:
    """What a snapshot has. Everything raises StateUnusable for values that no coordinator writes."""

    def __init__(self, connection: sqlite3.Connection, snapshot: Snapshot, log: str) -> None:
        self._connection, self._snapshot = connection, snapshot
        self.log = log
        """The name of the log that it is the state of."""

    def restore(self, state: Path) -> None:
        """Puts a copy where a state is to be; nothing may be there."""
        for _ in chain(self.partitions(), self.files()):
            pass  # a text that cannot be read is found here, and not when somebody asks
        restore_snapshot(self._snapshot, state)

    def times(self) -> tuple[int, int] | None:
        """When its first file was committed, and when a file changed last; None where it has no file."""
        first_ms, newest_ms = self._connection.execute(_TIMES).fetchone()
        return None if first_ms is None else (int(first_ms), int(newest_ms))

    def last_record(self) -> bytes | None:
        """The digest of the last record that was applied; None before the first."""
        (digest,) = self._connection.execute(_LAST_RECORD).fetchone()
        return digest if isinstance(digest, bytes) else None

    def partitions(self) -> Iterator[SnapshotPartition]:
        return map(SnapshotPartition._make, self._connection.execute(_PARTITIONS))

    def files(self) -> Iterator[SnapshotFile]:
        """In the order in which they were committed."""
        for number, key, owners, committed_ms in self._connection.execute(_FILES):
            yield SnapshotFile(number, key, tuple(map(int, owners.split(","))), committed_ms)

    def held(self) -> Iterator[HeldOffsets]:
        """By file."""
        return map(HeldOffsets._make, self._connection.execute(_HELD))


def listed_snapshots(log_dirs: Sequence[Path]) -> Snapshots:
    """The snapshots that lie in logs' folders now. What is listed before a log is read does not go beyond its end."""
    by_coordinator: dict[int, set[Snapshot]] = {}
    for log_dir in log_dirs:
        for folder in log_dir.glob(f"{DISKLESS_METADATA_TOPIC}-*"):
            if name := _FOLDER.fullmatch(folder.name):
                by_coordinator.setdefault(int(name[1]), set()).update(snapshots(folder))
    return {number: sorted(some, key=lambda one: -one.next_offset) for number, some in by_coordinator.items()}


@contextmanager
def opened_snapshot(snapshot: Snapshot, coordinator: int, cluster_id: str | None) -> Iterator[SnapshotContents]:
    """What is in a snapshot, once it was found to be what was written, sound, and of this coordinator's log. Raises
    StateUnusable where it is not, or does not stay so."""
    file = f"{snapshot.file.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(file, uri=True)) as connection:
            log = _log_name(connection, coordinator, cluster_id)
            check_snapshot(snapshot, log)
            yield SnapshotContents(connection, snapshot, log)
    except (sqlite3.Error, LookupError, ValueError, TypeError, AttributeError, OverflowError) as fault:
        raise StateUnusable(f"it cannot be read: {fault}") from None


def _log_name(connection: sqlite3.Connection, coordinator: int, cluster_id: str | None) -> str:
    """The name of the log that a snapshot is of: the partition's, after the id of its cluster and a space where its
    coordinator gave one."""
    row = connection.execute(_LOG).fetchone()
    name = "" if row is None else str(row[0])
    cluster, _, partition = name.rpartition(" ")
    if partition != f"{DISKLESS_METADATA_TOPIC}-{coordinator}" or (cluster_id and cluster not in ("", cluster_id)):
        raise StateUnusable(f"it is the state of {name or 'no log'}")
    return name

"""Log directories with partitions of `__diskless_metadata`, and buckets with files, for tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tieredctl_proposals.coordinator.file_log import FileLog
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.coordinator.snapshots import prune, take_snapshot
from tieredctl_proposals.model.diskless_records import DisklessRecord, PartitionCreated

from tests.diskless_records import TOPIC_ID, committed_batch, file_committed
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.model.ids import uuid_text

FOLDER = "diskless/"
HOUR_MS = 3_600_000
NOON_MS = 1_763_812_800_000
"""When the oldest file of most tests was committed."""


def key(number: int) -> str:
    """A key as brokers write them."""
    return FOLDER + uuid_text(number.to_bytes(16))


def created(partition: int = 0) -> PartitionCreated:
    return PartitionCreated(topic_id=TOPIC_ID, topic="t", partition=partition)


def committed(number: int, first: int, last: int, partition: int = 0, owners: tuple[int, ...] = (0,)) -> DisklessRecord:
    """A file with one batch of a partition, whose times are those of its record."""
    batch = committed_batch(partition, first, last, log_append_timestamp_ms=-1)
    return file_committed(key(number), batch, owner_ids=owners)


def write_log(log_dir: Path, coordinator: int, records: Sequence[tuple[int, DisklessRecord]]) -> Path:
    """Appends records, each with its time in ms, a batch each: the log's folder."""
    folder = log_dir / f"__diskless_metadata-{coordinator}"
    with FileLog(folder.name, folder) as log:
        for time_ms, record in records:
            log.append([record], time_ms)
    return folder


def write_pruned_log(
    log_dir: Path,
    coordinator: int,
    records: Sequence[tuple[int, DisklessRecord]],
    snapshots_after: Sequence[int],
    cluster_id: str | None = None,
) -> Path:
    """The same with snapshots beside it, taken after so many records, and pruned as a coordinator does: the folder."""
    folder = log_dir / f"__diskless_metadata-{coordinator}"
    name = folder.name if cluster_id is None else f"{cluster_id} {folder.name}"
    with TemporaryDirectory() as states, FileLog(name, folder, segment_bytes=1) as log:
        state = Path(states) / "state.sqlite"
        for time_ms, record in records:
            log.append([record], time_ms)
            log.sync()
            if log.end_offset in snapshots_after:
                recover(state, log, folder).connection.close()
                take_snapshot(state, folder, log.name)
        assert prune(log, folder) == snapshots_after[0]
    return folder


def batch(*values: bytes | None, offset: int) -> bytes:
    """A record batch of values, whatever they are."""
    return encode_batch([Record(offset + at, NOON_MS, None, value) for at, value in enumerate(values)])


def put(bucket: Path, name: str, modified_ms: int, size: int = 84) -> None:
    """An object of a bucket that is a folder."""
    path = bucket / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (modified_ms / 1000, modified_ms / 1000))

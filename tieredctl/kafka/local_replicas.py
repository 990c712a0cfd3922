"""User partitions' segments in brokers' log directories; no log is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart, parse_segment_file_name, segment_file_name
from tieredctl.formats.indexes import read_time_index
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE
from tieredctl.kafka.local_logs import forbidden, partition_folders
from tieredctl.model.local_replica import LocalReplica, LocalSegment

_ENTRY_BYTES = 12


def read_local_replicas(log_dirs: Iterable[Path]) -> list[LocalReplica]:
    """The partitions of log directories, once per replica.

    A folder without a sound partition.metadata is left out. Raises TieredctlError for what may not be read, and
    `path-missing` or `not-a-log-dir` where there is no such folder: finding nothing there would look like all is well.
    """
    replicas = []
    for log_dir in log_dirs:
        if not log_dir.is_dir():
            there = log_dir.exists()
            message = f"{log_dir} is a file, not a broker's log directory." if there else f"There is no {log_dir}."
            raise TieredctlError(ErrorCode.NOT_A_LOG_DIR if there else ErrorCode.PATH_MISSING, message)
        found = list(_replicas(log_dir))
        if not found and not (log_dir / META_PROPERTIES_FILE).exists():
            raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{log_dir} has no partition.")
        replicas += found
    return replicas


def _replicas(log_dir: Path) -> Iterator[LocalReplica]:
    for partition, folder in partition_folders(log_dir):
        try:
            parsed = [name for file in folder.iterdir() if (name := parse_segment_file_name(file.name))]
            settled = [name for name in parsed if name.transition is None and name.segment_id is None]
            bases = sorted(name.offset for name in settled if name.part is SegmentPart.LOG)
            snapshots = frozenset(name.offset for name in settled if name.part is SegmentPart.PRODUCER_SNAPSHOT)
            segments = [found for base in bases if (found := _segment(folder, base)) is not None]
        except PermissionError as error:
            raise forbidden(error) from None
        except OSError:
            continue  # Kafka removed the partition meanwhile.
        yield LocalReplica(partition, str(folder), segments, snapshots)


def _segment(folder: Path, base_offset: int) -> LocalSegment | None:
    """A segment; None where Kafka removed it meanwhile. A broker rebuilds a time index that is missing."""
    try:
        log = (folder / segment_file_name(base_offset, SegmentPart.LOG)).stat()
    except FileNotFoundError:
        return None
    try:
        timestamp = _last_timestamp(folder / segment_file_name(base_offset, SegmentPart.TIME_INDEX))
    except FileNotFoundError:
        timestamp = None
    return LocalSegment(base_offset, log.st_size, int(log.st_mtime * 1000) if timestamp is None else timestamp)


def _last_timestamp(time_index: Path) -> int | None:
    """The greatest timestamp, with which a closed segment's time index ends; None without an entry, where Kafka uses
    the file's modification time (LogSegment.largestTimestamp)."""
    with time_index.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _ENTRY_BYTES))
        last = file.read(_ENTRY_BYTES)
        if not any(last):
            file.seek(0)
            last = file.read()  # preallocated with zeros
    try:
        entries = read_time_index(last)
    except DecodeError:
        return None
    return entries[-1].timestamp if entries and entries[-1].timestamp > 0 else None

"""User partitions in brokers' log directories: their lineage, and where the local log begins."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint, read_offset_checkpoint
from tieredctl.formats.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    SegmentPart,
    parse_partition_folder_name,
    parse_segment_file_name,
    segment_file_name,
)
from tieredctl.formats.indexes import read_time_index
from tieredctl.formats.meta_properties import (
    META_PROPERTIES_FILE,
    ZOOKEEPER_VERSION,
    MetaProperties,
    read_meta_properties,
)
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE, read_partition_metadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalLog, LocalReplica, LocalSegment

_END_CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
"""Up to which offset logs were committed, and flushed."""
_NOTHING_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""How reading fails where there is no such file; any other failure is the disk's, and says nothing of what is there."""


def read_local_logs(log_dirs: Iterable[Path]) -> dict[TopicIdPartition, LocalLog]:
    """The partitions of log directories, by id. Of several replicas the one that begins earliest is taken.

    A folder that lacks a sound partition.metadata, leader-epoch-checkpoint or segment is left out: it proves nothing.
    Raises TieredctlError for what exists and may not, or cannot, be read.
    """
    logs: dict[TopicIdPartition, LocalLog] = {}
    for log_dir in log_dirs:
        log_start_offsets = read_log_start_offsets(log_dir)
        with _reading(log_dir):
            for partition, folder in partition_folders(log_dir):
                log = _local_log(folder, log_start_offsets.get((partition.topic, partition.partition)))
                earliest = logs.get(partition)
                if log and (earliest is None or log.local_start_offset < earliest.local_start_offset):
                    logs[partition] = log
    return logs


def read_tiered_partitions(log_dir: Path, excluded: Collection[TopicIdPartition]) -> Iterator[TopicIdPartition]:
    """The partitions, but for known ones, whose log starts below the first segment here: records in between are in
    remote storage alone. Both the broker's checkpoint and the partition's own leader epochs have to say so, as a broker
    that dies may leave either of them outdated.

    Raises TieredctlError for what exists and may not, or cannot, be read.
    """
    names = {(one.topic, one.partition) for one in excluded}
    starts = {name: start for name, start in read_log_start_offsets(log_dir).items() if name not in names}
    with _reading(log_dir):
        for partition, folder in partition_folders(log_dir, starts) if starts else ():
            start = starts[partition.topic, partition.partition]
            log = _local_log(folder, start) if partition not in excluded else None
            if log is not None and max(start, log.leader_epochs[0][1]) < log.local_start_offset:
                yield partition


def read_log_start_offsets(log_dir: Path) -> dict[tuple[str, int], int]:
    """The broker's checkpoint, by topic and partition; empty where there is no usable one."""
    return _checkpointed(log_dir / LOG_START_OFFSET_CHECKPOINT)


def read_least_end_offsets(log_dir: Path) -> dict[tuple[str, int], int]:
    """The least end offset (exclusive) of logs, by topic and partition, from the broker's checkpoints.

    Read it before the logs: a running broker keeps writing both.
    """
    ends: dict[tuple[str, int], int] = {}
    for name in _END_CHECKPOINTS:
        for partition, offset in _checkpointed(log_dir / name).items():
            ends[partition] = max(offset, ends.get(partition, 0))
    return ends


def _checkpointed(file: Path) -> dict[tuple[str, int], int]:
    try:
        with _reading(file):
            entries = read_offset_checkpoint(file.read_bytes())
    except (*_NOTHING_THERE, DecodeError):
        return {}
    return {(entry.topic, entry.partition): entry.offset for entry in entries}


def partition_folders(
    log_dir: Path, only: Collection[tuple[str, int]] | None = None
) -> Iterator[tuple[TopicIdPartition, Path]]:
    """A log directory's partition folders, recognised by their names and a sound partition.metadata; `only` those of
    some topics and partitions. Raises OSError where the disk fails, and TieredctlError for what may not be read."""
    for folder in _entries(log_dir):
        name = parse_partition_folder_name(folder.name)
        if name is None or name.fate is not None or (only is not None and (name.topic, name.partition) not in only):
            continue
        try:
            metadata = read_partition_metadata((folder / PARTITION_METADATA_FILE).read_bytes())
        except PermissionError as error:
            raise forbidden(error) from None
        except (*_NOTHING_THERE, DecodeError):
            continue
        yield TopicIdPartition(metadata.topic_id, name.topic, name.partition), folder


def _entries(log_dir: Path) -> list[Path]:
    """A log directory's content; empty where it is not a folder, which reading the metadata reports better."""
    try:
        return sorted(log_dir.iterdir())
    except PermissionError as error:
        raise forbidden(error) from None
    except _NOTHING_THERE:
        return []


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    """Raises TieredctlError for what exists and may not, or cannot, be read."""
    try:
        yield
    except _NOTHING_THERE:
        raise
    except PermissionError as error:
        raise forbidden(error) from None
    except OSError as error:
        message = f"{error.filename or place} cannot be read: {error.strerror or error}."
        raise TieredctlError(ErrorCode.UNREADABLE, message, hint="") from None


def forbidden(error: PermissionError) -> TieredctlError:
    """The error for what may not be read."""
    return TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{error.filename} may not be read.")


def _local_log(folder: Path, log_start_offset: int | None) -> LocalLog | None:
    try:
        entries = read_leader_epoch_checkpoint((folder / LEADER_EPOCH_CHECKPOINT).read_bytes())
        names = [parse_segment_file_name(file.name) for file in folder.iterdir()]
    except PermissionError as error:
        raise forbidden(error) from None
    except (*_NOTHING_THERE, DecodeError):
        return None
    starts = [name.offset for name in names if name and name.part is SegmentPart.LOG and name.transition is None]
    if not starts or not entries:
        return None
    epochs = tuple((entry.epoch, entry.start_offset) for entry in entries)
    return LocalLog(epochs, min(starts), _moved_on(log_start_offset, epochs[0][1], min(starts)))


def _moved_on(checkpointed: int | None, first_epoch_start: int, local_start: int) -> int | None:
    """A log start offset. A running broker writes its checkpoint once a minute, but cuts the leader epochs as soon as
    it moves the log start; only epochs that were made anew of the local log begin just where that does."""
    if checkpointed is None or first_epoch_start == local_start:
        return checkpointed
    return max(checkpointed, first_epoch_start)


def log_dir_owner(log_dir: Path) -> MetaProperties:
    """The owner of a log directory by its `meta.properties`; with no field where there is no usable one, as in a copy
    of some folders."""
    with suppress(OSError, DecodeError):
        return read_meta_properties((log_dir / META_PROPERTIES_FILE).read_bytes())
    return MetaProperties(ZOOKEEPER_VERSION, None, None, None)


_ENTRY_BYTES = 12


def read_local_replicas(log_dirs: Iterable[Path]) -> list[LocalReplica]:
    """The partitions of log directories, once per replica.

    A folder without a sound partition.metadata is left out. Raises TieredctlError for what may not, or cannot, be
    read, and `path-missing` or `not-a-log-dir` where there is no such folder: finding nothing there would look like all
    is well.
    """
    replicas = []
    for log_dir in log_dirs:
        if not log_dir.is_dir():
            there = log_dir.exists()
            message = f"{log_dir} is a file, not a broker's log directory." if there else f"There is no {log_dir}."
            raise TieredctlError(ErrorCode.NOT_A_LOG_DIR if there else ErrorCode.PATH_MISSING, message)
        with _reading(log_dir):
            of_log_dir = list(replicas_in(log_dir))
        if not of_log_dir and not (log_dir / META_PROPERTIES_FILE).exists():
            raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{log_dir} has no partition.")
        replicas += of_log_dir
    return replicas


def replicas_in(log_dir: Path, only: Collection[tuple[str, int]] | None = None) -> Iterator[LocalReplica]:
    """The partitions of one log directory, or `only` those of some topics and partitions. Raises as
    `partition_folders` does."""
    for partition, folder in partition_folders(log_dir, only):
        try:
            parsed = [name for file in folder.iterdir() if (name := parse_segment_file_name(file.name))]
            settled = [name for name in parsed if name.transition is None and name.segment_id is None]
            bases = sorted(name.offset for name in settled if name.part is SegmentPart.LOG)
            snapshots = frozenset(name.offset for name in settled if name.part is SegmentPart.PRODUCER_SNAPSHOT)
            segments = [segment for base in bases if (segment := _segment(folder, base)) is not None]
        except PermissionError as error:
            raise forbidden(error) from None
        except _NOTHING_THERE:
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

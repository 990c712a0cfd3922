"""User partitions in brokers' log directories: their lineage, and where the local log begins."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint, read_offset_checkpoint
from tieredctl.formats.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    SegmentPart,
    parse_partition_folder_name,
    parse_segment_file_name,
)
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE, read_partition_metadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalLog

_END_CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
"""Up to which offset logs were committed, and flushed."""


def read_local_logs(log_dirs: Iterable[Path]) -> dict[TopicIdPartition, LocalLog]:
    """The partitions of log directories, by id. Of several replicas the one that begins earliest is taken.

    A folder that lacks a sound partition.metadata, leader-epoch-checkpoint or segment is left out: it proves nothing.
    Raises TieredctlError for what exists and may not be read.
    """
    logs: dict[TopicIdPartition, LocalLog] = {}
    for log_dir in log_dirs:
        log_start_offsets = read_log_start_offsets(log_dir)
        for partition, folder in partition_folders(log_dir):
            log = _local_log(folder, log_start_offsets.get((partition.topic, partition.partition)))
            known = logs.get(partition)
            if log and (known is None or log.local_start_offset < known.local_start_offset):
                logs[partition] = log
    return logs


def read_tiered_partitions(log_dir: Path, known: Collection[TopicIdPartition]) -> Iterator[TopicIdPartition]:
    """The partitions, but for known ones, whose log starts below the first segment here: records in between are in
    remote storage alone. Both the broker's checkpoint and the partition's own leader epochs have to say so, as a broker
    that dies may leave either of them outdated.

    Raises TieredctlError for what exists and may not be read.
    """
    names = {(one.topic, one.partition) for one in known}
    starts = {name: start for name, start in read_log_start_offsets(log_dir).items() if name not in names}
    for partition, folder in partition_folders(log_dir, starts) if starts else ():
        start = starts[partition.topic, partition.partition]
        log = _local_log(folder, start) if partition not in known else None
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
        entries = read_offset_checkpoint(file.read_bytes())
    except PermissionError as error:
        raise forbidden(error) from None
    except (OSError, DecodeError):
        return {}
    return {(entry.topic, entry.partition): entry.offset for entry in entries}


def partition_folders(
    log_dir: Path, only: Collection[tuple[str, int]] | None = None
) -> Iterator[tuple[TopicIdPartition, Path]]:
    """A log directory's partition folders, recognised by their names and a sound partition.metadata; `only` those of
    some topics and partitions."""
    for folder in _entries(log_dir):
        name = parse_partition_folder_name(folder.name)
        if name is None or name.fate is not None or (only is not None and (name.topic, name.partition) not in only):
            continue
        try:
            metadata = read_partition_metadata((folder / PARTITION_METADATA_FILE).read_bytes())
        except PermissionError as error:
            raise forbidden(error) from None
        except (OSError, DecodeError):
            continue
        yield TopicIdPartition(metadata.topic_id, name.topic, name.partition), folder


def _entries(log_dir: Path) -> list[Path]:
    """A log directory's content; empty where it is not a folder, which reading the metadata reports better."""
    try:
        return sorted(log_dir.iterdir())
    except PermissionError as error:
        raise forbidden(error) from None
    except OSError:
        return []


def forbidden(error: PermissionError) -> TieredctlError:
    """The error for what may not be read."""
    return TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{error.filename} may not be read.")


def _local_log(folder: Path, log_start_offset: int | None) -> LocalLog | None:
    try:
        entries = read_leader_epoch_checkpoint((folder / LEADER_EPOCH_CHECKPOINT).read_bytes())
        names = [parse_segment_file_name(file.name) for file in folder.iterdir()]
    except PermissionError as error:
        raise forbidden(error) from None
    except (OSError, DecodeError):
        return None
    starts = [name.offset for name in names if name and name.part is SegmentPart.LOG and name.transition is None]
    if not starts or not entries:
        return None
    epochs = tuple((entry.epoch, entry.start_offset) for entry in entries)
    return LocalLog(epochs, min(starts), log_start_offset)

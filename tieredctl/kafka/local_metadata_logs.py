"""Nodes' metadata logs in their log directories: names, sizes, and the first batch of each snapshot and of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tieredctl.errors import DecodeError
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from tieredctl.formats.snapshot_times import FIRST_BATCH_WITHIN, first_record_ms, snapshot_times
from tieredctl.kafka.local_logs import forbidden
from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.model.local_metadata_log import SeenMetadataLog, SeenSegment, SeenSnapshot

_LARGEST_PROPERTIES = 1 << 16


def read_local_metadata_logs(log_dirs: Iterable[Path]) -> list[SeenMetadataLog]:
    """Those of the log directories that have one. What the node deletes meanwhile is left out. Raises TieredctlError
    for what may not be read."""
    try:
        return [_metadata_log(log_dir) for log_dir in log_dirs if (log_dir / CLUSTER_METADATA_FOLDER).is_dir()]
    except PermissionError as error:
        raise forbidden(error) from None


def _metadata_log(log_dir: Path) -> SeenMetadataLog:
    log = MetadataLog.opened(log_dir / CLUSTER_METADATA_FOLDER)
    begins_with = _beginning(log.segments[0].path, FIRST_BATCH_WITHIN) if log.segments else None
    return SeenMetadataLog(
        _node_id(log_dir),
        str(log.folder),
        log.start_offset,
        list(_snapshots(log)),
        [SeenSegment(one.base_offset, one.size) for one in log.segments],
        None if begins_with is None else first_record_ms(begins_with),
    )


def _snapshots(log: MetadataLog) -> Iterator[SeenSnapshot]:
    """Without the one that holds a new quorum's first voters (KIP-853), which no node replays the log from."""
    for one in log.snapshots:
        beginning = _beginning(one.path, FIRST_BATCH_WITHIN) if one.end_offset else None
        if beginning is not None:
            written_ms, last_contained_ms = snapshot_times(beginning) or (None, None)
            yield SeenSnapshot(one.end_offset, one.epoch, one.size, written_ms, last_contained_ms)


def _node_id(log_dir: Path) -> int | None:
    try:
        properties = _beginning(log_dir / META_PROPERTIES_FILE, _LARGEST_PROPERTIES)
        return None if properties is None else read_meta_properties(properties).node_id
    except DecodeError:
        return None


def _beginning(file: Path, length: int) -> bytes | None:
    try:
        with file.open("rb") as opened:
            return opened.read(length)
    except FileNotFoundError:
        return None

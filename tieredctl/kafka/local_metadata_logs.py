"""Nodes' metadata logs in their log directories: names, sizes, and the first batch of each snapshot and of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tieredctl.errors import DecodeError
from tieredctl.formats.file_names import (
    CLUSTER_METADATA_FOLDER,
    SegmentPart,
    parse_kraft_snapshot_name,
    parse_segment_file_name,
)
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from tieredctl.formats.snapshot_times import FIRST_BATCH_WITHIN, first_record_ms, snapshot_times
from tieredctl.kafka.local_logs import forbidden
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
    folder = log_dir / CLUSTER_METADATA_FOLDER
    files = sorted(folder.iterdir())
    logs = list(_segments(files))
    begins_with = _beginning(logs[0][0], FIRST_BATCH_WITHIN) if logs else None
    return SeenMetadataLog(
        _node_id(log_dir),
        str(folder),
        logs[0][1].base_offset if logs else 0,
        sorted(_snapshots(files), key=lambda one: (one.epoch, one.end_offset)),
        [segment for _, segment in logs],
        None if begins_with is None else first_record_ms(begins_with),
    )


def _segments(files: Iterable[Path]) -> Iterator[tuple[Path, SeenSegment]]:
    for file in files:
        name = parse_segment_file_name(file.name)
        if name is not None and name.part is SegmentPart.LOG and name.transition is None:
            size = _size(file)
            if size is not None:
                yield file, SeenSegment(name.offset, size)


def _snapshots(files: Iterable[Path]) -> Iterator[SeenSnapshot]:
    """Without the one that holds a new quorum's first voters (KIP-853), which no node replays the log from."""
    for file in files:
        name = parse_kraft_snapshot_name(file.name)
        if name is None or name.transition is not None or not name.end_offset:
            continue
        size, beginning = _size(file), _beginning(file, FIRST_BATCH_WITHIN)
        if size is not None and beginning is not None:
            written_ms, last_contained_ms = snapshot_times(beginning) or (None, None)
            yield SeenSnapshot(name.end_offset, name.epoch, size, written_ms, last_contained_ms)


def _node_id(log_dir: Path) -> int | None:
    try:
        properties = _beginning(log_dir / META_PROPERTIES_FILE, _LARGEST_PROPERTIES)
        return None if properties is None else read_meta_properties(properties).node_id
    except DecodeError:
        return None


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def _beginning(file: Path, length: int) -> bytes | None:
    try:
        with file.open("rb") as opened:
            return opened.read(length)
    except FileNotFoundError:
        return None

"""A node's `__cluster_metadata-0`: KRaft snapshots, and the segments of the log, as they are when this is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.file_names import (
    CLUSTER_METADATA_FOLDER,
    SegmentPart,
    parse_kraft_snapshot_name,
    parse_segment_file_name,
)
from tieredctl.formats.kraft_log import KraftLogRecord, demanded_records, sound_batches
from tieredctl.formats.kraft_snapshot import FIRST_BATCH_WITHIN, first_record_ms, read_kraft_snapshot, snapshot_times
from tieredctl.formats.log_scan import Damage
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, read_meta_properties
from tieredctl.formats.record_batches import BatchHeader
from tieredctl.kafka.local_logs import forbidden
from tieredctl.model.local_metadata_log import SeenMetadataLog, SeenSegment, SeenSnapshot
from tieredctl.process.progress import note_more

_PIECE_BYTES = 1 << 22


class SnapshotFile(NamedTuple):
    """A finished snapshot. In the order of Kafka's OffsetAndEpoch."""

    epoch: int
    end_offset: int
    """Exclusive."""
    path: Path
    size: int


class SegmentFile(NamedTuple):
    """The `.log` of a segment."""

    base_offset: int
    path: Path
    size: int


class MetadataBatch(NamedTuple):
    """A sound batch of the log; `position` is that of its first byte in `path`."""

    path: Path
    position: int
    header: BatchHeader
    data: memoryview


@dataclass(frozen=True, slots=True)
class MetadataLog:
    """The files that matter of one node's `__cluster_metadata-0`."""

    folder: Path
    snapshots: tuple[SnapshotFile, ...]
    segments: tuple[SegmentFile, ...]

    @staticmethod
    def opened(folder: Path) -> MetadataLog:
        """Without what a running node deletes meanwhile. Raises OSError."""
        snapshots, segments = [], []
        for entry in os.scandir(folder):
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if not S_ISREG(status.st_mode):
                continue
            path, size = Path(entry.path), status.st_size
            snapshot, segment = parse_kraft_snapshot_name(entry.name), parse_segment_file_name(entry.name)
            if snapshot is not None and snapshot.transition is None:
                snapshots.append(SnapshotFile(snapshot.epoch, snapshot.end_offset, path, size))
            elif segment is not None and segment[1:] == (SegmentPart.LOG, None, None):
                segments.append(SegmentFile(segment.offset, path, size))
        return MetadataLog(folder, tuple(sorted(snapshots)), tuple(sorted(segments)))

    @property
    def start_offset(self) -> int:
        """Where the log begins when a node starts on these files: in memory, a running one may have raised it."""
        return self.segments[0].base_offset if self.segments else 0

    def batches(self, from_offset: int = 0) -> Iterator[MetadataBatch]:
        """The batches that reach to `from_offset` or beyond, in the order of the log; without a last one whose end was
        never written.

        Raises DecodeError where a batch is damaged or offsets do not follow each other, OSError where a file cannot be
        read.
        """
        following: int | None = None
        for number, segment in enumerate(self.segments):
            is_last = number == len(self.segments) - 1
            if not is_last and self.segments[number + 1].base_offset <= from_offset:
                continue
            if following is not None and segment.base_offset != following:
                raise DecodeError(f"{segment.path.name} begins after offset {following}, where the log ended", 0)
            following = segment.base_offset
            for batch in file_batches(segment.path, segment.size, segment.base_offset, may_be_torn=is_last):
                if batch.header.base_offset != following:
                    reason = f"a batch of {segment.path.name} begins with offset {batch.header.base_offset}"
                    raise DecodeError(f"{reason}, not {following}", batch.position)
                following = batch.header.last_offset + 1
                if batch.header.last_offset >= from_offset:
                    yield batch


def logged_records(batch: MetadataBatch) -> Iterator[KraftLogRecord]:
    """The records of a batch. Raises DecodeError."""
    return demanded_records(batch.position, batch.header, batch.data)


def snapshot_records(snapshot: SnapshotFile) -> Iterator[KraftLogRecord]:
    """The records of a snapshot, header and footer included. Raises DecodeError where it is not whole and sound,
    OSError where it cannot be read."""
    with snapshot.path.open("rb") as file:
        yield from read_kraft_snapshot(iter(lambda: file.read(_PIECE_BYTES), b""), snapshot.size)


def file_batches(path: Path, size: int, base_offset: int = 0, *, may_be_torn: bool = False) -> Iterator[MetadataBatch]:
    """The batches of a segment, or of a snapshot, up to a size; without a last one that is torn, where that may be.

    Raises DecodeError where one is damaged, OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
        for part in sound_batches(_up_to(size, pieces), size, base_offset):
            if not isinstance(part, Damage):
                note_more("batches read", 1)
                yield MetadataBatch(path, *part)
            elif part.torn and may_be_torn:
                return
            else:
                raise DecodeError(f"{part.reason}, in {path.name}", part.position)


def _up_to(size: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:size]
        size -= len(piece)
        if size <= 0:
            return


_LARGEST_PROPERTIES = 1 << 16


def read_local_metadata_logs(log_dirs: Iterable[Path]) -> list[SeenMetadataLog]:
    """The metadata logs of those log directories that have one. What the node deletes meanwhile is left out. Raises
    TieredctlError for what may not be read."""
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

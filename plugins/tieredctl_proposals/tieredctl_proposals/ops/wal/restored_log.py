"""Writes a partition's folder of a broker's log directory from the combined objects that have its segments.

Batches are written as they were uploaded, byte for byte. What a broker can make itself is left to it: offset, time and
transaction indexes and producer snapshots, which KIP-1176 never uploads either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from errno import EINVAL, ENOTSUP
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    SegmentPart,
    parse_partition_folder_name,
    partition_folder_name,
    segment_file_name,
)
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.partition_metadata import (
    PARTITION_METADATA_FILE,
    PartitionMetadata,
    encode_partition_metadata,
)
from tieredctl.formats.record_batches import BatchHeader
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.object_store import ObjectStore
from tieredctl_proposals.ops.wal.both_tiers import LocalPart
from tieredctl_proposals.ops.wal.line_of_leaders import NO_END, ends_of_epochs
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.reading import fetch_log_segment
from tieredctl_proposals.wal.replayed import KnownWalSegment

_VERIFY = "`tieredctl wal verify` shows all that is damaged or missing."
_MOST_LOG_BYTES = 1 << 30
_MOST_OFFSETS = (1 << 31) - 1
"""The most offsets of one log file, whose indexes have relative offsets of 32 bits."""


@dataclass(slots=True)
class RestoredLog:
    """What was written of a partition. Offsets are inclusive."""

    partition: TopicIdPartition
    start_offset: int
    end_offset: int
    bytes: int = 0
    batches: int = 0
    files: int = 0


def folder_name(partition: TopicIdPartition) -> str:
    """The partition's folder. Raises TieredctlError `undecodable` for a topic that no broker can have: anybody may have
    written the events."""
    name = partition_folder_name(partition.topic, partition.partition)
    parsed = parse_partition_folder_name(name)
    if (
        partition.topic in (".", "..")
        or parsed is None
        or (parsed.topic, parsed.partition) != (partition.topic, partition.partition)
    ):
        raise TieredctlError(ErrorCode.UNDECODABLE, f"{name!r} cannot be a partition's folder.")
    return name


def write_log(store: ObjectStore, partition: TopicIdPartition, part: LocalPart, folder: Path | None) -> RestoredLog:
    """Writes a partition's log into a new folder; all is on disk when it returns. Without a folder, its segments are
    only read and checked.

    Raises TieredctlError `undecodable` where an object does not have what the events say, `object-missing`, and
    `unwritable`.
    """
    restored = RestoredLog(partition, part.start_offset, part.start_offset - 1)
    epochs = dict(part.epochs)
    writer = _LogWriter(folder)
    try:
        if folder is not None:
            folder.mkdir()
        if not part.segments:
            writer.begin(part.start_offset)
        for header, data in _batches(store, part.segments):
            epochs.setdefault(header.partition_leader_epoch, header.base_offset)
            writer.write(header, data)
            restored.end_offset = header.last_offset
            restored.bytes += len(data)
            restored.batches += 1
        writer.close()
        restored.files = writer.files
        if folder is None:
            return restored
        entries = [EpochEntry(epoch, start) for epoch, start in epochs.items() if epoch >= 0]
        _write(folder / LEADER_EPOCH_CHECKPOINT, encode_leader_epoch_checkpoint(entries))
        _write(folder / PARTITION_METADATA_FILE, encode_partition_metadata(PartitionMetadata(0, partition.topic_id)))
        sync(folder)
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{folder} cannot be written: {error.strerror}.") from None
    finally:
        writer.abandon()
    return restored


def sync(path: Path) -> None:
    """Makes a file's bytes, or a folder's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder.
        if error.errno not in (EINVAL, ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _batches(store: ObjectStore, segments: Sequence[KnownWalSegment]) -> Iterator[tuple[BatchHeader, bytes]]:
    """Each batch once, checked: its CRC, its place in the object, and that offsets and leader epochs rise."""
    following, ends = (segments[0].metadata.start_offset if segments else 0), ends_of_epochs(segments)
    for segment in segments:
        key = object_key(segment.combined_segment_id)
        try:
            data = fetch_log_segment(store, segment)
        except TieredctlError as error:
            raise _lost(key, store) if error.code is ErrorCode.OBJECT_MISSING else error from None
        first, end, last = segment.metadata.start_offset, segment.metadata.end_offset, None
        for block in scan_log([data], len(data), OneByOne()):
            if isinstance(block, Damage):
                raise _damaged(key, segment, f"byte {block.position} after that: {block.reason}")
            for position, header in zip(block.positions, block.headers, strict=True):
                last = header
                if header.last_offset < following:
                    continue  # also in an earlier segment
                offsets = f"offsets {header.base_offset} to {header.last_offset}"
                if header.last_offset >= ends.get(header.partition_leader_epoch, NO_END):
                    raise _damaged(
                        key, segment, f"a batch of leader epoch {header.partition_leader_epoch} has {offsets}"
                    )
                is_inside = first <= header.base_offset and header.last_offset <= end
                if header.base_offset < following or not is_inside:
                    raise _damaged(key, segment, f"a batch has {offsets}, where {following} comes next")
                following = header.last_offset + 1
                yield header, data[position : position + header.size]
        if last is None or last.last_offset != segment.metadata.end_offset:
            raise _damaged(key, segment, f"it does not end at offset {segment.metadata.end_offset}")


def _lost(key: str, store: ObjectStore) -> TieredctlError:
    message = f"{key} is not in {store.url}, though the events say that it was uploaded."
    return TieredctlError(ErrorCode.UNDECODABLE, message, hint=_VERIFY)


def _damaged(key: str, segment: KnownWalSegment, reason: str) -> TieredctlError:
    message = f"{key} is not what the events say, from byte {segment.start_file_position}: {reason}."
    return TieredctlError(ErrorCode.UNDECODABLE, message, hint=_VERIFY)


class _LogWriter:
    """Log files, each as large as a broker can have one; only counted where there is no folder for them."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._base_offset = self._size = 0
        self.files = 0

    def write(self, header: BatchHeader, data: bytes) -> None:
        is_full = self._size + len(data) > _MOST_LOG_BYTES
        if not self.files or is_full or header.last_offset - self._base_offset > _MOST_OFFSETS:
            self.begin(header.base_offset)
        if self._descriptor is not None:
            _write_all(self._descriptor, data)
        self._size += len(data)

    def begin(self, base_offset: int) -> None:
        """Another log file."""
        self.close()
        if self._folder is not None:
            path = self._folder / segment_file_name(base_offset, SegmentPart.LOG)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._base_offset, self._size = base_offset, 0
        self.files += 1

    def close(self) -> None:
        if self._descriptor is not None:
            os.fsync(self._descriptor)
        self.abandon()

    def abandon(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]

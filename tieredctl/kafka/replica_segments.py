"""Segments of remote storage on brokers' disks, where they are until local retention: whatever files a replica has them
in, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart, segment_file_name
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.kafka.local_logs import forbidden, read_local_replicas, replicas_in
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.local_log import LocalReplica
from tieredctl.ports.replica_disks import Refusal, ReplicaSegment

_PIECE_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class ReplicaDirectories:
    """Log directories of brokers, running or not."""

    log_dirs: Sequence[Path]

    @classmethod
    def of(cls, log_dirs: Sequence[Path]) -> ReplicaDirectories:
        """Raises TieredctlError for what is not a log directory, or may not be read. Where a disk fails is said of each
        segment that it may have."""
        for log_dir in log_dirs:
            try:
                read_local_replicas([log_dir])
            except TieredctlError as error:
                if error.code is not ErrorCode.UNREADABLE:
                    raise
        return cls(log_dirs)

    def segments(self, metadata: RemoteLogSegmentMetadata) -> Iterator[ReplicaSegment | Refusal]:
        """As `ReplicaDisks` has it."""
        for log_dir in self.log_dirs:
            yield from _of_directory(log_dir, metadata)


def _of_directory(log_dir: Path, metadata: RemoteLogSegmentMetadata) -> Iterator[ReplicaSegment | Refusal]:
    partition = metadata.topic_id_partition
    try:
        replicas = [*replicas_in(log_dir, {(partition.topic, partition.partition)})]
    except OSError as error:
        yield _unread(str(log_dir), error)
        return
    own = [one for one in replicas if one.partition == partition]
    if not own:
        yield Refusal(str(log_dir), f"it has no replica of {partition} with topic id {partition.topic_id}")
    for replica in own:
        yield _segment(replica, metadata)


def _unread(place: str, error: OSError) -> Refusal:
    """A failing disk's: the bytes may be there all the same."""
    return Refusal(place, f"{error.filename or place}: {error.strerror or error}", is_unread=True)


def _segment(replica: LocalReplica, metadata: RemoteLogSegmentMetadata) -> ReplicaSegment | Refusal:
    folder = Path(replica.folder)
    try:
        pieces = [piece for base in _bases(replica, metadata) for piece in _batches(folder, base, metadata)]
        snapshot = _snapshot(folder, metadata.end_offset + 1)
    except FileNotFoundError as error:
        return Refusal(replica.folder, f"{error.filename} was deleted meanwhile")
    except PermissionError as error:
        raise forbidden(error) from None
    except OSError as error:
        return _unread(replica.folder, error)
    if not pieces:
        return Refusal(replica.folder, f"it has no batch of offsets {metadata.start_offset} to {metadata.end_offset}")
    return ReplicaSegment(replica.folder, b"".join(pieces), snapshot)


def _bases(replica: LocalReplica, metadata: RemoteLogSegmentMetadata) -> list[int]:
    """The files that may have some of the segment's offsets."""
    bases = [one.base_offset for one in replica.segments]
    ends = [*bases[1:], metadata.end_offset + 1]
    return [
        base
        for base, end in zip(bases, ends, strict=True)
        if base <= metadata.end_offset and end > metadata.start_offset
    ]


def _batches(folder: Path, base: int, metadata: RemoteLogSegmentMetadata) -> Iterator[bytes]:
    """The sound batches of a file that lie within the segment, next to one another in one piece."""
    path = folder / segment_file_name(base, SegmentPart.LOG)
    with path.open("rb") as file:
        size = path.stat().st_size
        for block in scan_log(iter(lambda: file.read(_PIECE_BYTES), b""), size, OneByOne(), base):
            if isinstance(block, Damage):
                continue
            for start, header in zip(block.positions, block.headers, strict=True):
                if header.base_offset >= metadata.start_offset and header.last_offset <= metadata.end_offset:
                    yield bytes(block.buffer[start : start + header.size])


def _snapshot(folder: Path, offset: int) -> bytes | None:
    path = folder / segment_file_name(offset, SegmentPart.PRODUCER_SNAPSHOT)
    return path.read_bytes() if path.exists() else None

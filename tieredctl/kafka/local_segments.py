"""Segments on a broker's disk in the form of remote ones, so that one reader takes both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT, SegmentPart, segment_file_name
from tieredctl.formats.log_scan import LogBlock, OneByOne, scan_log
from tieredctl.kafka.local_logs import forbidden, read_least_end_offsets, read_local_replicas
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import ON_DISK, LeaderEpochs, LocalReplica
from tieredctl.ports.layout import AlteredObject, Layout, Part, SegmentReader
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore

_ANY_TIME = (1 << 63) - 1
_FILES = {
    Part.LOG: SegmentPart.LOG,
    Part.PRODUCER_SNAPSHOT: SegmentPart.PRODUCER_SNAPSHOT,
    Part.TRANSACTION_INDEX: SegmentPart.TRANSACTION_INDEX,
}
"""What is asked of them; a producer snapshot has the offset after the segment in its name."""


class LocalTail(NamedTuple):
    """A partition on a disk: its folder, its segments, and the offset before which all is committed by the broker's
    checkpoints, or, where they do not say, where the log ends."""

    folder: Path
    segments: Sequence[RemoteLogSegmentMetadata]
    end_offset: int


def local_tails(log_dirs: Collection[Path], topics: Collection[str]) -> dict[TopicIdPartition, LocalTail]:
    """The partitions of some topics in log directories. Of several replicas the one that reaches furthest is taken.

    Raises TieredctlError for what may not be read, or is not a log directory."""
    tails: dict[TopicIdPartition, LocalTail] = {}
    for log_dir in log_dirs:
        ends = read_least_end_offsets(log_dir)
        for replica in read_local_replicas([log_dir]):
            name = replica.partition.topic, replica.partition.partition
            if name[0] not in topics or not replica.segments:
                continue
            segments = list(_segments(replica))
            end = ends[name] if name in ends else _log_end(Path(replica.folder), segments[-1])
            tail = LocalTail(Path(replica.folder), segments, end)
            other = tails.get(replica.partition)
            if other is None or tail.end_offset > other.end_offset:
                tails[replica.partition] = tail
    return tails


def _log_end(folder: Path, active: RemoteLogSegmentMetadata) -> int:
    end, files = active.start_offset, LocalSegmentFiles(folder, active)
    for part in scan_log(files.stream(Part.LOG), active.known_size or 0, OneByOne(), active.start_offset):
        if isinstance(part, LogBlock):
            end = part.headers[-1].last_offset + 1
    return end


def _segments(replica: LocalReplica) -> Iterator[RemoteLogSegmentMetadata]:
    epochs = _epochs(Path(replica.folder))
    bases = [segment.base_offset for segment in replica.segments]
    for segment, (base, following) in zip(replica.segments, pairwise([*bases, None]), strict=True):
        assert base is not None
        last = (1 << 63) - 2 if following is None else following - 1
        yield RemoteLogSegmentMetadata(
            topic_id_partition=replica.partition,
            segment_id=ON_DISK,
            start_offset=base,
            end_offset=last,
            author=-1,
            max_timestamp_ms=_ANY_TIME,
            event_timestamp_ms=0,
            segment_leader_epochs=tuple(_within(epochs, base, last)),
            segment_size_in_bytes=segment.size,
            state=(
                RemoteLogSegmentState.COPY_SEGMENT_STARTED
                if following is None
                else RemoteLogSegmentState.COPY_SEGMENT_FINISHED
            ),
        )


def _epochs(folder: Path) -> LeaderEpochs:
    try:
        entries = read_leader_epoch_checkpoint((folder / LEADER_EPOCH_CHECKPOINT).read_bytes())
    except PermissionError as error:
        raise forbidden(error) from None
    except (OSError, DecodeError):
        return ()
    return [(entry.epoch, entry.start_offset) for entry in entries]


def _within(epochs: LeaderEpochs, first: int, last: int) -> Iterator[tuple[int, int]]:
    for (epoch, start), (_, following) in pairwise([*epochs, (-1, last + 1)]):
        if start <= last and following > first:
            yield epoch, max(start, first)


@dataclass(frozen=True, slots=True)
class LayoutWithDisk:
    """A layout, and the segments on a disk."""

    layout: Layout
    folders: Mapping[TopicIdPartition, Path]

    @property
    def name(self) -> str:
        """The layout's."""
        return self.layout.name

    def promised_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]:
        if segment.segment_id == ON_DISK:
            return {Part.LOG: str(self._reader(segment).path(Part.LOG))}
        return self.layout.promised_objects(segment)

    def optional_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]:
        return {} if segment.segment_id == ON_DISK else self.layout.optional_objects(segment)

    def open_segment(self, store: ObjectStore, segment: RemoteLogSegmentMetadata, /) -> SegmentReader:
        return self._reader(segment) if segment.segment_id == ON_DISK else self.layout.open_segment(store, segment)

    def _reader(self, segment: RemoteLogSegmentMetadata) -> LocalSegmentFiles:
        return LocalSegmentFiles(self.folders[segment.topic_id_partition], segment)


@dataclass(frozen=True, slots=True)
class LocalSegmentFiles:
    """A `SegmentReader` of a segment's files in a partition's folder."""

    folder: Path
    segment: RemoteLogSegmentMetadata

    def path(self, part: Part) -> Path:
        """Where a part is."""
        is_at_end = part is Part.PRODUCER_SNAPSHOT
        offset = self.segment.end_offset + 1 if is_at_end else self.segment.start_offset
        return self.folder / segment_file_name(offset, _FILES[part])

    def parts(self) -> Mapping[Part, int]:
        found = {part: self.path(part) for part in _FILES}
        return {part: path.stat().st_size for part, path in found.items() if path.exists()}

    def contradictions(self) -> Sequence[AlteredObject]:
        return ()

    def chunk_bytes(self) -> int:
        return 1

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        with self._opened(part) as path, path.open("rb") as file:
            file.seek(start)
            return file.read() if end is None else file.read(max(end - start, 0))

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        with self._opened(part) as path, path.open("rb") as file:
            while piece := file.read(chunk_size):
                yield piece

    @contextmanager
    def _opened(self, part: Part) -> Iterator[Path]:
        path = self.path(part)
        try:
            yield path
        except FileNotFoundError:
            if part is Part.LOG:
                # It was there when its folder was listed: a running broker trims what is copied, and retention deletes.
                message = f"{path} was deleted since its folder was listed, as running brokers do."
                raise TieredctlError(ErrorCode.UNREADABLE, message) from None
            raise TieredctlError(ErrorCode.OBJECT_MISSING, f"{path} does not exist.") from None
        except PermissionError as error:
            raise forbidden(error) from None

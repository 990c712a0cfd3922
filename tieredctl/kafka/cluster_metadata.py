"""How many partitions `__remote_log_metadata` has, by the controllers' log in the same log directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tieredctl.errors import DecodeError
from tieredctl.formats.file_names import SegmentPart, parse_kraft_snapshot_name, parse_segment_file_name
from tieredctl.formats.kraft_records import KraftRecordType, decode_kraft_record
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import BatchHeader, read_records
from tieredctl.kafka.source import METADATA_TOPIC

CLUSTER_METADATA_FOLDER = "__cluster_metadata-0"
_PIECE_BYTES = 1 << 22
_OF_TOPICS = (KraftRecordType.TOPIC, KraftRecordType.PARTITION, KraftRecordType.REMOVE_TOPIC)
_NAME = METADATA_TOPIC.encode("ascii")


def metadata_topic_partition_count(log_dirs: Iterable[Path]) -> int | None:
    """The topic's number of partitions; None where no log directory has a `__cluster_metadata-0` with it.

    Of several the most recent one is believed. One that cannot be read in full is ignored.
    """
    told = [found for log_dir in log_dirs if (found := _told_by(log_dir / CLUSTER_METADATA_FOLDER)) is not None]
    if not told:
        return None
    _, count = max(told, key=lambda one: one[0])
    return count


def _told_by(folder: Path) -> tuple[int, int | None] | None:
    """A replica's end offset (exclusive), and the number of partitions it has; None where there is none."""
    topic = _MetadataTopic()
    try:
        snapshot, logs = _files(folder)
        if snapshot is not None:
            _, path = snapshot
            topic.take_snapshot(path)
        reached = snapshot[0] if snapshot else 0
        for index, (base_offset, path) in enumerate(logs):
            if base_offset > reached:
                return None  # the offsets between are missing
            reached = max(reached, topic.take_log(path, reached, appended_to=index == len(logs) - 1))
    except (OSError, DecodeError):
        return None
    return (reached, topic.count) if snapshot or logs else None


def _files(folder: Path) -> tuple[tuple[int, Path] | None, list[tuple[int, Path]]]:
    """The latest snapshot with its end offset (exclusive), and the segments of the log that reach beyond it."""
    snapshots, logs = [], []
    for path in sorted(folder.iterdir()):
        snapshot, log = parse_kraft_snapshot_name(path.name), parse_segment_file_name(path.name)
        if snapshot and snapshot.transition is None:
            snapshots.append((snapshot.end_offset, path))
        elif log and log.part is SegmentPart.LOG and log.transition is None and log.segment_id is None:
            logs.append((log.offset, path))
    latest = max(snapshots, default=None)
    from_offset = latest[0] if latest else 0
    first = max((index for index, (base_offset, _) in enumerate(logs) if base_offset <= from_offset), default=0)
    return latest, logs[first:]


@dataclass(slots=True)
class _MetadataTopic:
    """The topic, by its records."""

    partitions: dict[bytes, set[int]] = field(default_factory=dict)
    """The partitions of each topic id of this name: one, if all records were read."""

    @property
    def count(self) -> int | None:
        if len(self.partitions) != 1:
            return None
        (numbers,) = self.partitions.values()
        return len(numbers) if numbers and numbers == set(range(len(numbers))) else None

    def take_snapshot(self, path: Path) -> None:
        """Raises DecodeError where it is incomplete: its last batch must be a footer, which is a control batch."""
        last: BatchHeader | None = None
        for header, batch in _batches(path, appended_to=False):
            self._take(header, batch, 0)
            last = header
        if last is None or not last.is_control:
            raise DecodeError("snapshot without its footer", path.stat().st_size)

    def take_log(self, path: Path, from_offset: int, *, appended_to: bool) -> int:
        """Adds a segment's records from an offset on; returns the offset after its last record."""
        reached = from_offset
        for header, batch in _batches(path, appended_to=appended_to):
            if header.last_offset >= from_offset:
                self._take(header, batch, from_offset)
                reached = header.last_offset + 1
        return reached

    def _take(self, header: BatchHeader, batch: memoryview, from_offset: int) -> None:
        if header.is_control or not self._may_concern(bytes(batch)):
            return
        for record in read_records(batch, 0, header):
            if record.offset >= from_offset:
                self._take_record(record.value or b"")

    def _may_concern(self, batch: bytes) -> bool:
        """Controllers do not compress: a batch with neither the name nor the id is not about the topic."""
        return _NAME in batch or any(topic_id in batch for topic_id in self.partitions)

    def _take_record(self, value: bytes) -> None:
        record = decode_kraft_record(value)
        if record.api_key not in _OF_TOPICS:
            return
        if record.fields is None:
            raise DecodeError(f"record of a topic in version {record.version}", 0)
        topic_id: bytes = record.fields["TopicId"]
        if record.api_key == KraftRecordType.TOPIC and record.fields["Name"] == METADATA_TOPIC:
            self.partitions[topic_id] = set()
        elif record.api_key == KraftRecordType.PARTITION and topic_id in self.partitions:
            self.partitions[topic_id].add(record.fields["PartitionId"])
        elif record.api_key == KraftRecordType.REMOVE_TOPIC:
            self.partitions.pop(topic_id, None)


def _batches(path: Path, *, appended_to: bool) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Raises DecodeError for damage; leaves out a log's last batch if it is still being written."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for part in scan_log(_pieces(file, size), size, OneByOne()):
            if isinstance(part, Damage):
                if part.torn and appended_to:
                    return
                raise DecodeError(part.reason, part.position)
            yield from _sound(part.buffer, part.positions, part.headers)


def _sound(
    buffer: bytes, positions: Sequence[int], headers: Sequence[BatchHeader]
) -> Iterator[tuple[BatchHeader, memoryview]]:
    view = memoryview(buffer)
    for position, header in zip(positions, headers, strict=True):
        yield header, view[position : position + header.size]


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The file up to its size when it was opened."""
    while size > 0 and (piece := file.read(min(_PIECE_BYTES, size))):
        size -= len(piece)
        yield piece

"""How many partitions `__remote_log_metadata` has, by the controllers' log in the same log directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tieredctl.errors import DecodeError
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.formats.kraft_records import KraftRecordType, decode_kraft_record
from tieredctl.formats.record_batches import BatchHeader, read_records
from tieredctl.kafka.metadata_log import (
    MetadataBatch,
    MetadataLog,
    SnapshotFile,
    file_batches,
)
from tieredctl.kafka.source import METADATA_TOPIC

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
        log = MetadataLog.opened(folder)
        latest = log.snapshots[-1] if log.snapshots else None
        reached = 0 if latest is None else latest.end_offset
        if log.segments and log.start_offset > reached:
            return None  # the offsets between are missing
        if latest is not None:
            topic.take_snapshot(latest)
        for batch in log.batches(reached):
            topic.take(batch, reached)
            reached = batch.header.last_offset + 1
    except (OSError, DecodeError):
        return None
    return (reached, topic.count) if log.snapshots or log.segments else None


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

    def take_snapshot(self, snapshot: SnapshotFile) -> None:
        """Raises DecodeError where it is incomplete: its last batch must be a footer, which is a control batch."""
        last: BatchHeader | None = None
        for batch in file_batches(snapshot.path, snapshot.size):
            self.take(batch, 0)
            last = batch.header
        if last is None or not last.is_control:
            raise DecodeError("snapshot without its footer", snapshot.size)

    def take(self, batch: MetadataBatch, from_offset: int) -> None:
        """Takes the records of a batch from an offset on."""
        if batch.header.is_control or not self._may_concern(bytes(batch.data)):
            return
        for record in read_records(batch.data, 0, batch.header):
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

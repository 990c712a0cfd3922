"""A metadata topic from brokers' log directories: a `MetadataSource` that needs no broker."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import cached_property, lru_cache
from heapq import merge
from itertools import groupby
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.formats.metadata_records import decode_event
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE, read_partition_metadata
from tieredctl.formats.record_chunks import MetadataRecord, RecordChunk, chunk_of
from tieredctl.kafka.local_logs import (
    log_dir_owner,
    read_least_end_offsets,
    read_log_start_offsets,
    read_tiered_partitions,
)
from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.kafka.node_replay import NodeReplay
from tieredctl.kafka.partition_log import PartitionLog, passed_over
from tieredctl.kraft.image import ClusterImage
from tieredctl.model.events import RemoteLogSegmentMetadataSnapshot
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.metadata_source import (
    METADATA_TOPIC,
    OffsetRange,
    cut_short,
    truncated,
    without_end,
    without_segments,
)

_PARTITION_FOLDER = re.compile(r"^(.+)-(\d+)$")
_PASSING_FOLDER = re.compile(r"^(.+)-(\d+)\.[0-9a-f]{32}-(future|stray|delete)$")
_WHY_PASSED_OVER = {
    "future": "Kafka is moving this replica to another disk",
    "stray": "this broker no longer owns the replica",
    "delete": "Kafka is deleting this replica",
}
_MERGED_RECORDS = 10_000


class LogDirectories:
    """One or more brokers' log directories. The same partition in several of them counts as replicas of one log."""

    def __init__(self, folders: Sequence[Path], topic: str = METADATA_TOPIC) -> None:
        """Raises TieredctlError if a folder is missing, may not be read, or has no partition of the topic, and if two
        belong to different clusters."""
        self._topic = topic
        self._found = _Found(folders, topic)
        self._end_offsets: dict[int, int] = {}

    @property
    def cluster_id(self) -> str | None:
        return self._found.cluster_id

    @property
    def metadata_topic_id(self) -> str | None:
        return next(iter(self.topic_ids)) if len(self.topic_ids) == 1 else None

    @property
    def topic_ids(self) -> frozenset[str]:
        """The ids of the topics of that name whose partitions are here: of one, unless it was deleted and recreated."""
        return frozenset(self._found.topic_ids)

    @property
    def partition_count(self) -> int | None:
        return self._found.partition_count

    def describe(self) -> dict[str, object]:
        return {
            "kind": "log-dir",
            "logDirs": [str(folder) for folder in self._found.folders],
            "clusterId": self.cluster_id,
            "metadataTopicId": self.metadata_topic_id,
            "metadataPartitions": len(self._found.replicas),
            "topicPartitions": self.partition_count,
            "endOffsets": {str(partition): end for partition, end in sorted(self._end_offsets.items())},
        }

    def metadata_partitions(self) -> list[int]:
        return sorted(self._found.replicas)

    def findings(self) -> list[Finding]:
        findings = list(self._found.passed_over)
        for partition in self.metadata_partitions():
            replicas = self._found.replicas[partition]
            findings += (finding for replica in replicas for finding in replica.findings())
            if start := self._start_offset(partition):
                findings.append(truncated(partition, start, self._topic))
        return findings

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        replicas = self._found.replicas.get(metadata_partition, [])
        if len(replicas) == 1:
            chunks = replicas[0].chunks(from_offset)
        else:
            chunks = _merged(self._topic, metadata_partition, replicas, from_offset)
        end = self._start_offset(metadata_partition)
        for chunk in chunks:
            if len(chunk):
                end = max(end, int(chunk.offsets[-1]) + 1)
            self._end_offsets[metadata_partition] = end
            yield chunk.starting_at(from_offset)
        log_end = max((one.end_offset for one in replicas), default=0)
        self._end_offsets[metadata_partition] = max(end, log_end)
        checkpointed = self._found.least_ends.get(metadata_partition, 0)
        least_end = max([checkpointed, *(one.least_end_offset for one in replicas)])
        if replicas and not any(one.has_segments for one in replicas):
            yield chunk_of((), [without_segments(metadata_partition, self._topic)])
        elif log_end < least_end:
            whose = "broker's checkpoints" if least_end == checkpointed else "producer snapshots"
            yield chunk_of((), [cut_short(metadata_partition, log_end, least_end, whose, self._topic)])
        elif not log_end and metadata_partition in self._found.without_ends:
            yield chunk_of((), [without_end(metadata_partition, self._topic)])

    def divisions(self, metadata_partition: int, most_offsets: int) -> list[int]:
        """See `DivisibleSource`: where files begin. Replicas are compared record by record, so they stay whole."""
        replicas = self._found.replicas.get(metadata_partition, [])
        return replicas[0].divisions(most_offsets) if len(replicas) == 1 else []

    def stretch(self, metadata_partition: int, offsets: OffsetRange) -> Iterator[RecordChunk]:
        """See `DivisibleSource`."""
        replicas = self._found.replicas.get(metadata_partition, [])
        if len(replicas) != 1:
            yield from self.chunks(metadata_partition, offsets.start)
            return
        yield from replicas[0].stretch(*offsets)
        known_end = self._end_offsets.get(metadata_partition, 0)
        self._end_offsets[metadata_partition] = max(known_end, replicas[0].end_offset)

    def tiered_besides(self, known: Collection[TopicIdPartition]) -> Sequence[TopicIdPartition]:
        """See `WitnessedSource`. A running broker may have begun, copied and trimmed one since the metadata was read:
        what the metadata gained until now explains it."""
        tiered = {one for folder in self._found.folders for one in read_tiered_partitions(folder, known)}
        return sorted(tiered - self._named_since()) if tiered else []

    def _named_since(self) -> set[TopicIdPartition]:
        """The user partitions of events that were written after those that were read."""
        now = LogDirectories(self._found.folders, self._topic)
        return {
            partition
            for number in now.metadata_partitions()
            for chunk in now.chunks(number, self._end_offsets.get(number, 0))
            for partition in _named_in(chunk)
        }

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        start = self._start_offset(metadata_partition)
        return OffsetRange(start, self._end_offsets.get(metadata_partition, start))

    def advance(self) -> bool:
        before, now = self._found.state(), _Found(self._found.folders, self._topic)
        if now.state() == before:
            return False
        self._found, self._end_offsets = now, {}
        return True

    def close(self) -> None:
        """Files are open only while they are read."""

    def _start_offset(self, metadata_partition: int) -> int:
        return min((replica.start_offset for replica in self._found.replicas.get(metadata_partition, ())), default=0)


class _Found:
    """What is in the log directories at one moment."""

    def __init__(self, folders: Sequence[Path], topic: str) -> None:
        """Raises TieredctlError as LogDirectories does."""
        self.folders = tuple(folders)
        self.topic = topic
        self.replicas: dict[int, list[PartitionLog]] = {}
        self.passed_over: list[Finding] = []
        self.least_ends: dict[int, int] = {}
        """The end offset that each log is known to have reached, by the checkpoints that name it."""
        self._of_nodes: set[int] = set()
        self.topic_ids: set[str] = set()
        for folder in self.folders:
            self._add(folder)
        if not self.replicas:
            names = ", ".join(str(folder) for folder in self.folders)
            message = f"There is no {topic} partition in {names}."
            hint = f"Give a broker's log directory: the folder that holds {topic}-0 and its siblings."
            raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, message, hint=hint)
        self.cluster_id = one_cluster_id(self.folders)

    @cached_property
    def partition_count(self) -> int | None:
        return metadata_topic_partition_count(self.folders, self.topic)

    @property
    def without_ends(self) -> Set[int]:
        """The logs in a node's own folders of which no checkpoint says how far they reached; each has one within
        seconds."""
        return self._of_nodes - self.least_ends.keys()

    def state(self) -> object:
        """A value that changes as soon as anything does that this and its replicas would answer."""
        replicas = {number: [one.state() for one in replicas] for number, replicas in self.replicas.items()}
        return (replicas, self.passed_over, self.least_ends, self.topic_ids, self.cluster_id, self.partition_count)

    def _add(self, folder: Path) -> None:
        log_start_offsets, least_ends = read_log_start_offsets(folder), read_least_end_offsets(folder)
        is_of_node = log_dir_owner(folder).cluster_id is not None
        for name in _names(folder):
            path = folder / name
            if (match := _PARTITION_FOLDER.match(name)) and match[1] == self.topic:
                partition = int(match[2])
                start = log_start_offsets.get((self.topic, partition), 0)
                try:
                    replica = PartitionLog(path, partition, start)
                except OSError as error:
                    raise _unreadable(path, error) from None
                self.replicas.setdefault(partition, []).append(replica)
                if (least_end := least_ends.get((self.topic, partition))) is not None:
                    self.least_ends[partition] = max(least_end, self.least_ends.get(partition, 0))
                if is_of_node:
                    self._of_nodes.add(partition)
                self.topic_ids |= _topic_ids(path)
            elif (match := _PASSING_FOLDER.match(name)) and match[1] == self.topic:
                self.passed_over.append(passed_over(path, _WHY_PASSED_OVER[match[3]]))


def _topic_ids(folder: Path) -> set[str]:
    """From the partition's own file, if it is usable."""
    with suppress(OSError, DecodeError):
        return {read_partition_metadata((folder / PARTITION_METADATA_FILE).read_bytes()).topic_id}
    return set()


def one_cluster_id(log_dirs: Sequence[Path]) -> str | None:
    """The cluster of log directories; None where none says it. Raises TieredctlError `usage` where they are of
    several."""
    cluster_ids = {
        log_dir: cluster_id for log_dir in log_dirs if (cluster_id := log_dir_owner(log_dir).cluster_id) is not None
    }
    if len(set(cluster_ids.values())) > 1:
        listed = ", ".join(f"{log_dir} of {cluster_id}" for log_dir, cluster_id in cluster_ids.items())
        hint = "Give the log directories of one cluster; `tieredctl store inspect` shows a meta.properties."
        raise TieredctlError(
            ErrorCode.USAGE, f"These log directories belong to different clusters: {listed}.", hint=hint
        )
    return next(iter(cluster_ids.values()), None)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: Path, error: OSError) -> TieredctlError:
    if isinstance(error, FileNotFoundError):
        return TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.")
    if isinstance(error, NotADirectoryError):
        return TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{path} is a file, not a broker's log directory.")
    if isinstance(error, PermissionError):
        return TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{path} may not be read.")
    return TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.")


def _merged(topic: str, partition: int, replicas: Sequence[PartitionLog], from_offset: int) -> Iterator[RecordChunk]:
    """The union of replicas by offset; different bytes at the same offset are a finding."""
    findings: list[Finding] = []

    def records(replica: PartitionLog) -> Iterator[tuple[MetadataRecord, Path]]:
        for chunk in replica.chunks(from_offset):
            findings.extend(chunk.findings)
            yield from ((record, replica.folder) for record in chunk.records())

    rows: list[MetadataRecord] = []
    by_offset = groupby(merge(*map(records, replicas), key=_offset), _offset)
    for offset, copies in by_offset:
        (first, folder), *others = copies
        rows.append(first)
        findings += (
            _conflict(topic, partition, offset, folder, path) for other, path in others if _differ(first, other)
        )
        if len(rows) >= _MERGED_RECORDS:
            yield chunk_of(rows, findings)
            rows, findings[:] = [], []
    yield chunk_of(rows, findings)


def _named_in(chunk: RecordChunk) -> Iterator[TopicIdPartition]:
    for record in chunk.records():
        with suppress(DecodeError):
            event = decode_event(record.value or b"")
            if not isinstance(event, RemoteLogSegmentMetadataSnapshot):
                yield event.topic_id_partition


def _offset(row: tuple[MetadataRecord, Path]) -> int:
    return row[0].offset


def _differ(one: MetadataRecord, other: MetadataRecord) -> bool:
    return (one.value, one.tombstone_key) != (other.value, other.tombstone_key)


def _conflict(topic: str, partition: int, offset: int, one: Path, other: Path) -> Finding:
    return Finding(
        FindingCode.METADATA_CONFLICT,
        f"{topic}-{partition}@{offset}",
        f"{one} and {other} have different bytes at offset {offset}; the first was used",
        {"metadataPartition": partition, "metadataOffset": offset, "file": str(other), "otherFile": str(one)},
        about=MetadataSubject(partition, offset),
    )


def metadata_topic_partition_count(log_dirs: Iterable[Path], topic: str = METADATA_TOPIC) -> int | None:
    """The topic's number of partitions; None where no log directory has a `__cluster_metadata-0` that says it for
    certain.

    Of several the most recent one is believed. One that cannot be read in full is ignored.
    """
    counts = [
        dated_count
        for log_dir in log_dirs
        if (dated_count := _dated_count_in(log_dir / CLUSTER_METADATA_FOLDER, topic)) is not None
    ]
    if not counts:
        return None
    _, count = max(counts, key=lambda one: one[0])
    return count


def _dated_count_in(folder: Path, topic: str) -> tuple[int, int | None] | None:
    """A replica's end offset (exclusive), and the number of partitions it has; None where there is none."""
    try:
        return _replayed(folder, _state(folder), topic)
    except OSError:
        return None


def _state(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Name, size and time of each file: changes whenever what the files say does. Raises OSError."""
    with os.scandir(folder) as entries:
        statuses = [(entry.name, entry.stat()) for entry in entries]
    return frozenset((name, status.st_size, status.st_mtime_ns) for name, status in statuses)


@lru_cache(maxsize=16)
def _replayed(folder: Path, _files: frozenset[tuple[str, int, int]], topic: str) -> tuple[int, int | None] | None:
    """The count of `_dated_count_in`, cached until the files change: whoever follows the metadata asks again and again.
    Raises OSError."""
    try:
        log = MetadataLog.opened(folder)
        node = NodeReplay(log)
        node.load_snapshot()
        node.load_log()
    except DecodeError:
        return None
    if not log.snapshots and not log.segments:
        return None
    image = node.replay.image
    is_certain = image.is_certain and not node.replay.in_transaction
    return image.end_offset, _partition_count(image, topic) if is_certain else None


def _partition_count(image: ClusterImage, topic: str) -> int | None:
    """The number of the topic's partitions; None where the topic is not there, or lacks one of them."""
    numbers = {number for topic_id in image.topics_named(topic) for number in image.topics[topic_id].partitions}
    return len(numbers) if numbers and numbers == set(range(len(numbers))) else None

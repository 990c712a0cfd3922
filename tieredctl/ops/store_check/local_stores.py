"""Reads what `store check` judges from log directories: small files, and the names in the index cache."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, read_leader_epoch_checkpoint, read_offset_checkpoint
from tieredctl.formats.committed_offsets import CommittedOffsets, read_committed_offsets
from tieredctl.formats.file_names import (
    COMMITTED_OFFSETS,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    REMOTE_LOG_SNAPSHOT,
    PartitionFolderName,
    SegmentFileName,
    SegmentPart,
    parse_index_cache_file_name,
    parse_partition_folder_name,
    parse_segment_file_name,
)
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE, PartitionMetadata, read_partition_metadata
from tieredctl.formats.remote_log_snapshot import RemoteLogSnapshot, read_remote_log_snapshot
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents

REMOTE_LOG_INDEX_CACHE = "remote-log-index-cache"

_Content = TypeVar("_Content")


class CachedFile(NamedTuple):
    """A file of `remote-log-index-cache`; `name` is None where it is not one of Kafka's."""

    path: Path
    name: SegmentFileName | None


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """A partition's folder. Files that are missing or unreadable are None."""

    path: Path
    topic: str
    partition: int
    topic_id: str | None
    leader_epochs: Sequence[EpochEntry] | None
    snapshot: RemoteLogSnapshot | None
    local_start_offset: int | None
    """The base offset of the first local segment."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class LocalStore:
    """A broker's log directory, as far as `store check` needs it."""

    path: Path
    committed_offsets: CommittedOffsets | None = None
    log_start_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    partitions: list[PartitionFolder] = field(default_factory=list)
    cached: list[CachedFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """Findings for what could not be read or understood."""


def read_local_stores(paths: Sequence[Path]) -> list[LocalStore]:
    """The content of several log directories. Raises TieredctlError where one is missing or is not a log directory."""
    return [_Reader(path).store for path in paths]


class _Reader:
    def __init__(self, path: Path) -> None:
        self.store = LocalStore(path)
        folders = [(folder, name) for folder in _folders_in(path) if (name := parse_partition_folder_name(folder.name))]
        self.store.committed_offsets = self._file(path / COMMITTED_OFFSETS, read_committed_offsets)
        checkpoint = self._file(path / LOG_START_OFFSET_CHECKPOINT, read_offset_checkpoint) or ()
        self.store.log_start_offsets = {(entry.topic, entry.partition): entry.offset for entry in checkpoint}
        cache = path / REMOTE_LOG_INDEX_CACHE
        self.store.cached = [CachedFile(file, parse_index_cache_file_name(file.name)) for file in self._files_in(cache)]
        for folder, name in folders:
            if name.fate is None:
                self.store.partitions.append(self._partition(folder, name))
            else:
                message = f"passed over: its name ends in {name.fate.value}"
                self._add(FindingCode.FOLDER_PASSED_OVER, folder, message)
        if not (folders or cache.is_dir() or self.store.committed_offsets):
            hint = "Give the folder that holds the partitions' folders, or remote-log-index-cache."
            raise TieredctlError(
                ErrorCode.NOT_A_LOG_DIR, f"{path} holds no file of a broker's local stores.", hint=hint
            )

    def _partition(self, folder: Path, name: PartitionFolderName) -> PartitionFolder:
        metadata: PartitionMetadata | None = self._file(folder / PARTITION_METADATA_FILE, read_partition_metadata)
        segments = [parse_segment_file_name(file.name) for file in self._files_in(folder)]
        starts = [s.offset for s in segments if s and s.part is SegmentPart.LOG and s.transition is None]
        damaged = FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED
        return PartitionFolder(
            path=folder,
            topic=name.topic,
            partition=name.partition,
            topic_id=metadata.topic_id if metadata else None,
            leader_epochs=self._file(folder / LEADER_EPOCH_CHECKPOINT, read_leader_epoch_checkpoint, damaged),
            snapshot=self._file(folder / REMOTE_LOG_SNAPSHOT, read_remote_log_snapshot),
            local_start_offset=min(starts, default=None),
        )

    def _file(
        self, path: Path, read: Callable[[bytes], _Content], code: FindingCode = FindingCode.STORE_DISAGREES
    ) -> _Content | None:
        """A file's content; None where it is missing. `code` is the finding's code where it is damaged."""
        try:
            return read(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self._add(FindingCode.UNREADABLE, path, f"it cannot be read: {error.strerror}")
        except DecodeError as error:
            self._add(code, path, f"it is damaged: {error.message}", position=error.position)
        return None

    def _files_in(self, folder: Path) -> list[Path]:
        try:
            return sorted(folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            self._add(FindingCode.UNREADABLE, folder, f"it cannot be listed: {error.strerror}")
            return []

    def _add(self, code: FindingCode, path: Path, message: str, **evidence: object) -> None:
        self.store.findings.append(Finding(code, str(path), message, {"file": str(path), **evidence}))


def _folders_in(path: Path) -> list[Path]:
    try:
        return sorted(entry for entry in path.iterdir() if entry.is_dir())
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.") from None
    except NotADirectoryError:
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{path} is a file, not a broker's log directory.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{path} may not be read.") from None


TopicPartition = tuple[str, int]


class StoreReplay:
    """The state that one local store's snapshots should show, each partition as of its snapshot's offset."""

    def __init__(self, store: LocalStore, events: SegmentEvents) -> None:
        """`events` are all of the metadata."""
        self._events = events
        self._read_up_to = dict(store.committed_offsets.offsets) if store.committed_offsets else {}
        snapshots = {(one.topic, one.partition): one.snapshot for one in store.partitions if one.snapshot}
        self._offsets = {
            (partition, snapshot.metadata_partition): snapshot.metadata_partition_offset
            for partition in events.partitions
            if (snapshot := snapshots.get((partition.topic, partition.partition)))
        }

    def segments(self, partition: TopicIdPartition) -> dict[str, RemoteLogSegmentMetadata]:
        """The segments of a partition as of its snapshot, by id."""
        return {segment.metadata.segment_id: segment.metadata for segment in self._state.segments_of(partition)}

    def unread_events(self, partition: TopicIdPartition) -> int:
        """How many events after a partition's snapshot the committed offsets mark as read."""
        return sum(
            self._events.count_between(partition, metadata_partition, offset, self._read_up_to[metadata_partition])
            for (one, metadata_partition), offset in self._offsets.items()
            if one == partition and metadata_partition in self._read_up_to
        )

    @cached_property
    def _state(self) -> ReplayedMetadata:
        return ReplayedMetadata(self._events.as_of(self._offsets))


class MetadataToCheck:
    """The whole of a metadata source, replayed once."""

    def __init__(self, stream: EventStream, stores: Sequence[LocalStore]) -> None:
        events = SegmentEvents(is_described=True)
        read_events(stream, events)
        self.state = ReplayedMetadata(events, keep_deleted=True)
        self.as_of_store: dict[Path, StoreReplay] = {store.path: StoreReplay(store, events) for store in stores}
        self.metadata_partition_of: dict[TopicIdPartition, int] = {}
        """The first that has events of a user partition."""
        self._incarnations: dict[TopicPartition, set[TopicIdPartition]] = defaultdict(set)
        self._topics: dict[str, set[str]] = defaultdict(set)
        self.source: MetadataSource = stream.source
        for partition, metadata_partition in stream.places:
            first = self.metadata_partition_of.get(partition, metadata_partition)
            self.metadata_partition_of[partition] = min(first, metadata_partition)
            self._incarnations[partition.topic, partition.partition].add(partition)
            self._topics[partition.topic_id].add(partition.topic)
        self.findings: list[Finding] = [*stream.findings, *self.state.findings]
        self.metadata_partitions = set(self.source.metadata_partitions())

    @property
    def is_whole(self) -> bool:
        """Whether an unknown id never had an event, as far as the read partitions show."""
        return is_whole(self.findings)

    def segments(self, segment_ids: Sequence[str]) -> dict[str, RemoteLogSegmentMetadata]:
        """The segments with some ids that ever had an event that could begin them, deleted ones too, by id."""
        segments = self.state.known(self.state.named(segment_ids))
        return {segment.metadata.segment_id: segment.metadata for _, segment in segments}

    def end_offset(self, metadata_partition: int) -> int:
        """The offset after the last one read."""
        return self.source.offset_range(metadata_partition).end

    def incarnations(self, topic: str, partition: int) -> list[TopicIdPartition]:
        """The partitions in the metadata under a topic's name; several where it was recreated."""
        return sorted(self._incarnations.get((topic, partition), ()))

    def topics(self, topic_id: str) -> set[str]:
        """The names that the metadata has for a topic id: one, unless something is wrong."""
        return self._topics.get(topic_id, set())

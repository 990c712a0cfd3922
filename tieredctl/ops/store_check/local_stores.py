"""Reads what `store check` judges from log directories: small files, and the names in the index cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding

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

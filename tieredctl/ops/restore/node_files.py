"""The files of new nodes: written beside each other in a folder of their own, and moved into their place at the end.

A broker starts from no folder without `meta.properties`, which is moved last. Of several folders it takes one without
for a new disk: so the one with the cluster's metadata first gets a file that it refuses, and its own after all others'.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import (
    CheckpointedOffset,
    EpochEntry,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
)
from tieredctl.formats.clean_shutdown import CLEAN_SHUTDOWN_FILE, CleanShutdown, encode_clean_shutdown
from tieredctl.formats.file_names import (
    BOOTSTRAP_CHECKPOINT,
    CLUSTER_METADATA_FOLDER,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    SegmentPart,
    partition_folder_name,
    segment_file_name,
)
from tieredctl.formats.meta_properties import (
    KRAFT_VERSION,
    META_PROPERTIES_FILE,
    MetaProperties,
    encode_meta_properties,
)
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE, PartitionMetadata, encode_partition_metadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.restore.placement import LogDirectory
from tieredctl.ports.object_store import UNFINISHED
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.replaced_file import PRIVATE

_STAGING = f"{UNFINISHED}restore"
_IS_NOTHING = (_STAGING, "lost+found")
RESTORED_MARK = ".tieredctl-restored"
"""Beside a restored node's files: by it, a run that is repeated knows its own."""
_CLEAN_SHUTDOWN_VERSION = 0
_UNFINISHED, _UNFINISHED_META = f"{META_PROPERTIES_FILE}.unfinished", b"version=unfinished\n"
"""What a broker refuses as `meta.properties` (MetaPropertiesEnsemble), and so does not start with the other folders."""
_RECOVERY_POINT, _HIGH_WATERMARK = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"


@dataclass(slots=True)
class DirectoryWriter:
    """Writes the files of one of a node's folders."""

    directory: LogDirectory
    _checkpoints: dict[str, list[CheckpointedOffset]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The staging folder."""
        return self.directory.folder / _STAGING

    def identity(self, cluster_id: str, broker_epoch: int | None) -> None:
        """`meta.properties`, and for a broker's logs the mark that it stopped in good order: that counts where all of
        its log directories have it."""
        if broker_epoch is not None and self.directory.has_logs:
            stopped = encode_clean_shutdown(CleanShutdown(_CLEAN_SHUTDOWN_VERSION, broker_epoch))
            (self.folder / CLEAN_SHUTDOWN_FILE).write_bytes(stopped)
        meta = MetaProperties(KRAFT_VERSION, cluster_id, self.directory.node_id, self.directory.directory_id)
        (self.folder / META_PROPERTIES_FILE).write_bytes(encode_meta_properties(meta))

    def cluster_metadata(self, snapshot: str, data: bytes, bootstrap: bytes, *, has_secrets: bool) -> None:
        """The metadata log's snapshot under its name, without a log, and what a node was formatted with. Where the
        snapshot has secrets, whoever writes it can read it alone."""
        folder = self.folder / CLUSTER_METADATA_FOLDER
        folder.mkdir()
        if has_secrets:
            (folder / snapshot).touch(PRIVATE)
        (folder / snapshot).write_bytes(data)
        (self.folder / BOOTSTRAP_CHECKPOINT).write_bytes(bootstrap)

    def empty_log(
        self, partition: TopicIdPartition, log_start_offset: int, next_offset: int, epochs: Sequence[EpochEntry]
    ) -> None:
        """A replica whose records are all in remote storage, or lost."""
        folder = self._partition(partition, epochs)
        (folder / segment_file_name(next_offset, SegmentPart.LOG)).touch()
        self._note(partition, log_start_offset, next_offset, next_offset)

    def log(self, partition: TopicIdPartition, segments: Mapping[int, bytes], end_offset: int, epoch: int) -> None:
        """A replica with segments by their base offsets; the broker makes their indexes when it starts."""
        start = min(segments)
        folder = self._partition(partition, [EpochEntry(epoch, start)])
        for base_offset, data in segments.items():
            (folder / segment_file_name(base_offset, SegmentPart.LOG)).write_bytes(data)
        self._note(partition, start, start, end_offset)

    def finish(self) -> None:
        """The log directory's checkpoints of offsets."""
        for name, entries in self._checkpoints.items():
            (self.folder / name).write_bytes(encode_offset_checkpoint(entries))

    def _partition(self, partition: TopicIdPartition, epochs: Sequence[EpochEntry]) -> Path:
        folder = self.folder / partition_folder_name(partition.topic, partition.partition)
        folder.mkdir()
        metadata = PartitionMetadata(0, partition.topic_id)
        (folder / PARTITION_METADATA_FILE).write_bytes(encode_partition_metadata(metadata))
        (folder / LEADER_EPOCH_CHECKPOINT).write_bytes(encode_leader_epoch_checkpoint(epochs))
        return folder

    def _note(self, partition: TopicIdPartition, log_start: int, recovery_point: int, high_watermark: int) -> None:
        offsets = {
            LOG_START_OFFSET_CHECKPOINT: log_start,
            _RECOVERY_POINT: recovery_point,
            _HIGH_WATERMARK: high_watermark,
        }
        for name, offset in offsets.items():
            entry = CheckpointedOffset(partition.topic, partition.partition, offset)
            self._checkpoints.setdefault(name, []).append(entry)


@contextmanager
def new_nodes(directories: Sequence[LogDirectory], mark: str) -> Iterator[dict[str, DirectoryWriter]]:
    """A writer for each directory of the nodes that are still to be filled, by its id; the folders take their files
    once everything is written, and a failure leaves nothing new. `mark` names what is restored: a node whose folders
    all have it already is left as it is.

    Raises TieredctlError `unwritable` where a folder has anything but what an interrupted restore left, or nothing can
    be written, `locked` while another restore writes into one.
    """
    folders = [one.folder for one in directories]
    writers: dict[str, DirectoryWriter] = {}
    with _written(), ExitStack() as locks:
        for folder in folders:
            demand_usable(folder, mark)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            locks.enter_context(_locked(folder))
        for folder in folders:
            demand_usable(folder, mark)
        to_write = {one.node_id for one in directories if not _is_restored(one.folder, mark)}
        try:
            for one in directories:
                if one.node_id in to_write:
                    writer = writers[one.directory_id] = DirectoryWriter(one)
                    shutil.rmtree(writer.folder, ignore_errors=True)
                    writer.folder.mkdir()
            yield writers
            for writer in writers.values():
                writer.finish()
                (writer.folder / RESTORED_MARK).write_text(mark, encoding="ascii")
                _demand_own(writer.folder)
            guarded = _guarded(writers.values())
            for writer in guarded:
                (writer.folder / _UNFINISHED).write_bytes(_UNFINISHED_META)
            os.sync()
            with critical_section():
                _move([*writers.values()], guarded)
                mark_complete()
        finally:
            for writer in writers.values():
                _clear(writer.folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            message = f"Another run writes into {folder}."
            raise TieredctlError(ErrorCode.LOCKED, message, hint="Wait until it ends.") from None
        yield
    finally:
        os.close(descriptor)


def _is_restored(folder: Path, mark: str) -> bool:
    """Whether a folder has exactly what is to be restored, and no broker was started on it yet."""
    try:
        is_same = (folder / RESTORED_MARK).read_text(encoding="ascii") == mark
    except (OSError, ValueError):
        return False
    return is_same and _has_meta(folder) and not (folder / LOCK_FILE).exists()


def _has_meta(folder: Path) -> bool:
    """Whether a folder has a `meta.properties` that a broker may start from."""
    try:
        return (folder / META_PROPERTIES_FILE).read_bytes() != _UNFINISHED_META
    except FileNotFoundError:
        return False


def demand_usable(folder: Path, mark: str) -> None:
    """Raises TieredctlError `unwritable` for a folder with another node's files, or anything else."""
    if _is_restored(folder, mark):
        return
    try:
        names = {one.name for one in folder.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{folder} cannot be read: {error.strerror}.") from None
    if _STAGING in names and not _has_meta(folder):
        return  # an interrupted restore, which may have moved some of its files
    left = sorted(names.difference(_IS_NOTHING))
    if left:
        raise _not_empty(folder, left)


def _not_empty(folder: Path, left: Sequence[str]) -> TieredctlError:
    message = f"{folder} is not empty: it has {left[0]}{f' and {len(left) - 1} more' if len(left) > 1 else ''}."
    hint = "A cluster is only restored into new folders: name an empty one, or one that does not exist."
    return TieredctlError(ErrorCode.UNWRITABLE, message, hint=hint)


def _move(writers: Sequence[DirectoryWriter], guarded: Sequence[DirectoryWriter]) -> None:
    """All files into their place, those first whose presence starts nothing."""
    for one in guarded:
        (one.folder / _UNFINISHED).rename(one.directory.folder / META_PROPERTIES_FILE)
    os.sync()
    for one in writers:
        for left in _left_by_earlier(one.folder):
            _remove(left)
        for path in [*one.folder.iterdir()]:
            if path.name != META_PROPERTIES_FILE:
                path.rename(one.directory.folder / path.name)
    for some in ([one for one in writers if one not in guarded], guarded):
        os.sync()
        for one in some:
            (one.folder / META_PROPERTIES_FILE).rename(one.directory.folder / META_PROPERTIES_FILE)
            one.folder.rmdir()
    os.sync()


def _clear(staging: Path) -> None:
    """Takes away what was written and not moved. The folder itself stays beside files that were moved while
    `meta.properties` was not: by it the next run knows that they are a restore's."""
    shutil.rmtree(staging, ignore_errors=True)
    folder = staging.parent
    if not _has_meta(folder) and any(one.name not in _IS_NOTHING for one in folder.iterdir()):
        staging.mkdir(exist_ok=True)


def _guarded(writers: Collection[DirectoryWriter]) -> list[DirectoryWriter]:
    """Those with the cluster's metadata, of nodes that have other folders besides."""
    folders_of = Counter(one.directory.node_id for one in writers)
    return [one for one in writers if one.directory.has_metadata and folders_of[one.directory.node_id] > 1]


def _left_by_earlier(staging: Path) -> list[Path]:
    return [one for one in staging.parent.iterdir() if one.name not in (*_IS_NOTHING, META_PROPERTIES_FILE)]


def _demand_own(staging: Path) -> None:
    """Raises TieredctlError `unwritable` unless all that an interrupted restore moved is written again."""
    foreign = sorted(one.name for one in _left_by_earlier(staging) if not (staging / one.name).exists())
    if foreign:
        raise _not_empty(staging.parent, foreign)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{error.filename or 'The node'} cannot be written: {error.strerror}."
        raise TieredctlError(ErrorCode.UNWRITABLE, message) from None


def in_segments(batches: Iterable[tuple[int, bytes]], start: int, most_bytes: int) -> dict[int, bytes]:
    """Batches with their base offsets, as segments of a log that starts at an offset."""
    segments, base, body = dict[int, bytes](), start, bytearray()
    for base_offset, batch in batches:
        if body and len(body) + len(batch) > most_bytes:
            segments[base], base, body = bytes(body), base_offset, bytearray()
        body += batch
    segments[base] = bytes(body)
    return segments

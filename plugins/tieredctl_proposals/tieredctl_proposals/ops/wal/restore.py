"""Restores partitions of a broker's log directory from combined objects, all of them or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from secrets import token_hex
from typing import Annotated

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import BOOTSTRAP_CHECKPOINT, CLUSTER_METADATA_FOLDER
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.object_store import UNFINISHED, ObjectStore
from tieredctl.process.interruption import critical_section, ending
from tieredctl.process.replaced_file import demand_writable
from tieredctl_proposals.ops.wal.both_tiers import LocalPart
from tieredctl_proposals.ops.wal.restored_log import RestoredLog, folder_name, sync, write_log

BROKER_FILES = (META_PROPERTIES_FILE, BOOTSTRAP_CHECKPOINT, CLUSTER_METADATA_FOLDER)
"""What a node has in its log directory that is of no partition in a store."""

_WHOLE = ".tieredctl-restored"
"""The folder of what is written whole, and not all in its place yet."""


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """What is restored of a store, and how."""

    selection: Selection = Selection()
    broker_files_from: Path | None = None
    """A log directory whose files of the broker itself are copied."""
    untiered_topics: Collection[str] = ()
    with_gaps: bool = False
    """What there is of partitions with missing offsets."""
    without_events: bool = False
    """Whether the objects' own indexes tell what they hold."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RestoredPartition(ResultRow):
    """A partition's log as it was written."""

    topic: str
    topic_id: Wide[str]
    partition: int
    start_offset: Annotated[int, Column("START")]
    end_offset: Annotated[int, Column("END")]
    batches: int
    bytes: Size[int]
    files: JsonOnly[int]
    folder: JsonOnly[str]


@dataclass(slots=True)
class RestoreOutcome:
    """What was written."""

    logs: list[RestoredLog] = field(default_factory=list)
    broker_files: list[str] = field(default_factory=list)

    def rows(self) -> list[RestoredPartition]:
        return [
            RestoredPartition(
                *(*log.partition.names, log.start_offset, log.end_offset, log.batches, log.bytes),
                *(log.files, folder_name(log.partition)),
            )
            for log in self.logs
        ]


def demand_epochs(partitions: Mapping[TopicIdPartition, LocalPart], untiered_topics: Collection[str]) -> None:
    """Raises TieredctlError `epochs-unknown` where a partition begins above offset 0 and its leader epochs below are
    not known, unless its topic is named.

    By the epochs of the restored records alone, a leader of a tiered topic deletes all remote segments of earlier
    epochs (RemoteLogManager.cleanupExpiredRemoteLogSegments), and reads nothing below its first epoch.
    """
    for partition, part in partitions.items():
        start = part.start_offset
        if start > 0 and not part.epochs and partition.topic not in untiered_topics:
            message = (
                f"{partition.topic}-{partition.partition} begins at offset {start}, and a store does not have the "
            )
            message += "leader epochs below it: if the topic is tiered, a broker would delete its remote segments."
            hint = "Give the metadata of remote storage, by --log-dir, --export or --bootstrap-server; if "
            hint += f"{partition.topic} is not tiered, give --untiered-topic {partition.topic}."
            raise TieredctlError(ErrorCode.EPOCHS_UNKNOWN, message, hint=hint)


def restore(
    store: ObjectStore,
    partitions: Mapping[TopicIdPartition, LocalPart],
    to: Path,
    *,
    broker_files_from: Path | None = None,
    dry_run: bool = False,
    tell: Callable[[RestoredLog], None] = lambda _log: None,
) -> RestoreOutcome:
    """Writes the folders of all partitions into a log directory, which may exist, but must have none of them.

    Everything is written aside and put into its place at the end; a failure leaves nothing, and what a killed run had
    written whole is put into its place by the next one. Raises TieredctlError as
    `write_log` does, `locked` while another run restores into it, and `unwritable` where something is in the way. A
    dry run reads and checks all of it, and writes nothing.
    """
    folders = [folder_name(partition) for partition in partitions]
    _demand_distinct(partitions, folders)
    copied = [] if broker_files_from is None else _broker_files(broker_files_from)
    outcome = RestoreOutcome(broker_files=copied)
    try:
        if dry_run:
            demand_writable(_nearest(to))
            _demand_absent(to, (*folders, *copied))
            for partition, part in partitions.items():
                outcome.logs.append(write_log(store, partition, part, None))
                tell(outcome.logs[-1])
            return outcome
        with _locked(to):
            if _finished(to) and all((to / name).exists() for name in (*folders, *copied)):
                for partition, part in partitions.items():
                    outcome.logs.append(write_log(store, partition, part, None))
                    tell(outcome.logs[-1])
                return outcome
            _demand_absent(to, (*folders, *copied))
            for left in to.glob(f"{UNFINISHED}*"):  # by a run that was killed; no broker starts with it
                shutil.rmtree(left)
            with _aside(to) as aside:
                for (partition, part), name in zip(partitions.items(), folders, strict=True):
                    log = write_log(store, partition, part, aside / name)
                    outcome.logs.append(log)
                    tell(log)
                for name in copied:
                    assert broker_files_from is not None
                    _copy(broker_files_from / name, aside / name)
                # Without meta.properties, which is the last one, no broker takes the folder for its own.
                _put_in_place(aside, to, [*folders, *reversed(copied)])
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{to} cannot be written: {error.strerror}.") from None
    return outcome


def _nearest(folder: Path) -> Path:
    """The folder, or that of its parents which is there."""
    return next(one for one in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(one))


def _demand_absent(to: Path, names: Iterable[str]) -> None:
    for name in names:
        if os.path.lexists(to / name):
            raise TieredctlError(
                ErrorCode.UNWRITABLE, f"{to / name} exists already.", hint="Name a new folder, or an empty one."
            )


@contextmanager
def _locked(to: Path) -> Iterator[None]:
    """Holds a folder, which is made if it is missing; if the block fails, an empty one that was made is removed."""
    is_new = not to.exists()
    to.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(to, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise TieredctlError(ErrorCode.LOCKED, f"Another run restores into {to}.") from None
        try:
            yield
        except BaseException:
            if is_new:
                with suppress(OSError):  # it has something of somebody else's
                    to.rmdir()
            raise
        if is_new:
            sync(to.absolute().parent)
    finally:
        os.close(descriptor)


@contextmanager
def _aside(to: Path) -> Iterator[Path]:
    """A folder to write in, which is gone afterwards."""
    aside = to / f"{UNFINISHED}{token_hex(8)}"
    aside.mkdir()
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@ending()
def _put_in_place(aside: Path, to: Path, names: Sequence[str]) -> None:
    """All of them or none: a run that is killed meanwhile leaves a folder that the next one finds, and no broker starts
    with."""
    whole, moved = to / _WHOLE, list[str]()
    sync(aside)
    aside.rename(whole)
    sync(to)
    try:
        for name in names:
            (whole / name).rename(to / name)
            moved.append(name)
        whole.rmdir()
        sync(to)
    except BaseException:
        for name in reversed(moved):
            (to / name).rename(whole / name)
        shutil.rmtree(whole)
        raise


def _finished(to: Path) -> bool:
    """Whether an earlier run was killed while it put what it had written into its place: the rest of it is there now.
    Raises TieredctlError `unwritable` where something else came there meanwhile."""
    whole = to / _WHOLE
    if not whole.is_dir():
        return False
    # meta.properties comes last here too.
    names = sorted((path.name for path in whole.iterdir()), key=lambda name: name in BROKER_FILES)
    names.sort(key=lambda name: name == META_PROPERTIES_FILE)
    _demand_absent(to, names)
    with critical_section():
        for name in names:
            (whole / name).rename(to / name)
        whole.rmdir()
        sync(to)
    return True


def _demand_distinct(partitions: Mapping[TopicIdPartition, LocalPart], folders: Sequence[str]) -> None:
    twice = {name for name in folders if folders.count(name) > 1}
    if twice:
        ids = ", ".join(one.topic_id for one, name in zip(partitions, folders, strict=True) if name in twice)
        message = f"The store has several topics of one name: {ids}."
        raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, message)


def _broker_files(source: Path) -> list[str]:
    if not (source / META_PROPERTIES_FILE).is_file():
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{source} has no {META_PROPERTIES_FILE}.")
    return [name for name in BROKER_FILES if (source / name).exists()]


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
    for path in (target, *target.rglob("*")):
        sync(path)

"""Restores partitions of a broker's log directory from combined objects, all of them or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from secrets import token_hex

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import BOOTSTRAP_CHECKPOINT
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document
from tieredctl.ops.wal.restored_log import RestoredLog, folder_name, write_log
from tieredctl.storage.protocol import UNFINISHED, ObjectStore
from tieredctl.wal.replayed import KnownWalSegment

_CLUSTER_METADATA = "__cluster_metadata-0"
BROKER_FILES = (META_PROPERTIES_FILE, BOOTSTRAP_CHECKPOINT, _CLUSTER_METADATA)
"""What a node has in its log directory that is of no partition in a store."""

Partitions = dict[TopicIdPartition, list[KnownWalSegment]]


@dataclass(slots=True)
class RestoreOutcome:
    """What was written."""

    logs: list[RestoredLog] = field(default_factory=list)
    broker_files: list[str] = field(default_factory=list)

    def rows(self) -> list[Document]:
        return [
            {
                "topic": log.partition.topic,
                "topicId": log.partition.topic_id,
                "partition": log.partition.partition,
                "startOffset": log.start_offset,
                "endOffset": log.end_offset,
                "batches": log.batches,
                "bytes": log.bytes,
                "files": log.files,
                "folder": folder_name(log.partition),
            }
            for log in self.logs
        ]


def by_partition(segments: Sequence[KnownWalSegment]) -> Partitions:
    """The segments of each partition by rising offset, partitions by name."""
    found: Partitions = {}
    for segment in sorted(segments, key=_place):
        found.setdefault(segment.metadata.topic_id_partition, []).append(segment)
    return found


def gaps_in(partitions: Partitions) -> list[Finding]:
    """Offsets that are missing between the segments of a partition."""
    gaps = []
    for partition, segments in partitions.items():
        end = segments[0].metadata.end_offset
        for _, segment in pairwise(segments):
            if segment.metadata.start_offset > end + 1:
                gaps.append(_gap(partition, end + 1, segment.metadata.start_offset - 1))
            end = max(end, segment.metadata.end_offset)
    return gaps


def _gap(partition: TopicIdPartition, first: int, last: int) -> Finding:
    name = f"{partition.topic}-{partition.partition}"
    evidence = {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "startOffset": first,
        "endOffset": last,
    }
    message = f"no combined object holds offsets {first} to {last}"
    about = PartitionSubject(partition, (first, last))
    return Finding(FindingCode.WAL_OFFSET_GAP, name, message, evidence, about=about)


def restore(
    store: ObjectStore,
    partitions: Partitions,
    to: Path,
    *,
    broker_files_from: Path | None = None,
    tell: Callable[[RestoredLog], None] = lambda _log: None,
) -> RestoreOutcome:
    """Writes the folders of all partitions into a log directory, which may exist, but must have none of them.

    Everything is written aside and put into its place at the end; a failure leaves nothing. Raises TieredctlError as
    `write_log` does, and `unwritable` where something is in the way.
    """
    folders = [folder_name(partition) for partition in partitions]
    _demand_distinct(partitions, folders)
    copied = [] if broker_files_from is None else _broker_files(broker_files_from)
    is_new = not to.exists()
    outcome = RestoreOutcome(broker_files=copied)
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name in (*folders, *copied):
            if os.path.lexists(to / name):
                raise TieredctlError(
                    ErrorCode.UNWRITABLE, f"{to / name} exists already.", hint="Name a new folder, or an empty one."
                )
        for left in to.glob(f"{UNFINISHED}*"):  # by a run that was killed; no broker starts with it
            shutil.rmtree(left)
        aside = to / f"{UNFINISHED}{token_hex(8)}"
        aside.mkdir()
        try:
            for (partition, segments), name in zip(partitions.items(), folders, strict=True):
                log = write_log(store, partition, segments, aside / name)
                outcome.logs.append(log)
                tell(log)
            for name in copied:
                assert broker_files_from is not None
                _copy(broker_files_from / name, aside / name)
            for name in (*folders, *copied):
                (aside / name).rename(to / name)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            if is_new:
                shutil.rmtree(to, ignore_errors=True)
            raise
        aside.rmdir()
    except OSError as error:
        raise TieredctlError(ErrorCode.UNWRITABLE, f"{to} cannot be written: {error.strerror}.") from None
    return outcome


def _place(segment: KnownWalSegment) -> tuple[str, str, int, int, int]:
    partition = segment.metadata.topic_id_partition
    return (
        partition.topic,
        partition.topic_id,
        partition.partition,
        segment.metadata.start_offset,
        segment.metadata.end_offset,
    )


def _demand_distinct(partitions: Partitions, folders: Sequence[str]) -> None:
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

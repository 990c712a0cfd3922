"""What Kafka calls the files and folders of a log directory and of its tiered storage.

Sources: LogFileUtils, UnifiedLog, LocalLog, RemoteIndexCache, Snapshots, RemoteLogSegmentFileset. A parser returns None
for a name that is not of its kind.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from tieredctl.model.ids import is_uuid

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
CLUSTER_METADATA_FOLDER = "__cluster_metadata-0"
"""The controllers' log and its snapshots."""
LOCK_FILE = ".lock"
"""Empty: a running broker holds a lock on it, so that no other starts in the same log directory."""
OFFSET_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    LOG_START_OFFSET_CHECKPOINT,
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
"""The text files of a log directory that hold an offset for each of its partitions."""
COMMITTED_OFFSETS = "_rlmm_committed_offsets"
REMOTE_LOG_SNAPSHOT = "remote_log_snapshot"

_OFFSET_DIGITS, _EPOCH_DIGITS = 20, 10
_LARGEST_OFFSET, _LARGEST_EPOCH = (1 << 63) - 1, (1 << 31) - 1


class SegmentPart(Enum):
    """What a file holds of a segment; the values are suffixes."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    LEADER_EPOCH_CHECKPOINT = ".leader_epoch_checkpoint"
    """In LocalTieredStorage only; a log directory has one `leader-epoch-checkpoint` per partition."""


class Transition(Enum):
    """A suffix after a file's own name: the file is being added or removed."""

    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"
    TEMPORARY = ".tmp"
    PARTIAL = ".part"


class SegmentFileName(NamedTuple):
    """`offset` is the segment's base offset; of a producer snapshot in a log directory, the next offset.

    `segment_id` stands in names of remote storage and of its index cache.
    """

    offset: int
    part: SegmentPart
    segment_id: str | None = None
    transition: Transition | None = None


class FolderFate(Enum):
    """Why a partition folder is not simply a partition's; the values are suffixes."""

    DELETE = "-delete"
    STRAY = "-stray"
    FUTURE = "-future"


class PartitionFolderName(NamedTuple):
    """With a fate, the topic may be cut short to keep the name within 255 characters."""

    topic: str
    partition: int
    fate: FolderFate | None = None


class KraftSnapshotName(NamedTuple):
    """`end_offset` is exclusive; `epoch` is that of the last record contained."""

    end_offset: int
    epoch: int
    transition: Transition | None = None


_PARTS = "|".join(re.escape(part.value) for part in SegmentPart)
_TRANSITIONS = "|".join(re.escape(transition.value) for transition in Transition)
_ID = r"[A-Za-z0-9_-]{22}"
_SEGMENT_FILE = re.compile(rf"([0-9]{{{_OFFSET_DIGITS}}})(?:-({_ID}))?({_PARTS})({_TRANSITIONS})?", re.ASCII)
_INDEX_CACHE_FILE = re.compile(rf"([0-9]{{1,19}})_({_ID})({_PARTS})({_TRANSITIONS})?", re.ASCII)
_KRAFT_SNAPSHOT = re.compile(
    rf"([0-9]{{{_OFFSET_DIGITS}}})-([0-9]{{{_EPOCH_DIGITS}}})(-[0-9]+)?\.checkpoint({_TRANSITIONS})?", re.ASCII
)
_PARTITION_FOLDER = re.compile(
    r"([A-Za-z0-9._-]{1,249})-([0-9]{1,10})(?:\.[0-9a-f]{32}(-delete|-stray|-future))?", re.ASCII
)


def parse_segment_file_name(name: str) -> SegmentFileName | None:
    """`<20 digits>[-<segment id>]<suffix>`: in a log directory, LocalTieredStorage, or an object's last name."""
    return _segment_file(_SEGMENT_FILE.fullmatch(name))


def parse_index_cache_file_name(name: str) -> SegmentFileName | None:
    """`<start offset>_<segment id><suffix>` in `remote-log-index-cache`."""
    return _segment_file(_INDEX_CACHE_FILE.fullmatch(name))


def parse_kraft_snapshot_name(name: str) -> KraftSnapshotName | None:
    """`<20 digits>-<10 digits>.checkpoint`, with a random number before `.checkpoint.part` while it is written
    or fetched: only there, as none is ever finished under such a name."""
    match = _KRAFT_SNAPSHOT.fullmatch(name)
    if match is None:
        return None
    end_offset, epoch = int(match[1]), int(match[2])
    if end_offset > _LARGEST_OFFSET or epoch > _LARGEST_EPOCH:
        return None
    transition = Transition(match[4]) if match[4] else None
    if match[3] and transition is not Transition.PARTIAL:
        return None
    return KraftSnapshotName(end_offset, epoch, transition)


def parse_partition_folder_name(name: str) -> PartitionFolderName | None:
    """`<topic>-<partition>`, the partition after the last dash, with `.<32 hex digits>-<fate>` where it has one."""
    match = _PARTITION_FOLDER.fullmatch(name)
    if match is None or int(match[2]) > _LARGEST_EPOCH:
        return None
    return PartitionFolderName(match[1], int(match[2]), FolderFate(match[3]) if match[3] else None)


def segment_file_name(offset: int, part: SegmentPart) -> str:
    """The name in a log directory."""
    return f"{offset:0{_OFFSET_DIGITS}}{part.value}"


def index_cache_file_name(start_offset: int, segment_id: str, part: SegmentPart) -> str:
    """The name in `remote-log-index-cache`."""
    return f"{start_offset}_{segment_id}{part.value}"


def kraft_snapshot_name(end_offset: int, epoch: int) -> str:
    """The name of a finished snapshot; `end_offset` is exclusive."""
    return f"{end_offset:0{_OFFSET_DIGITS}}-{epoch:0{_EPOCH_DIGITS}}.checkpoint"


def partition_folder_name(topic: str, partition: int) -> str:
    """The name of a partition's folder in a log directory."""
    return f"{topic}-{partition}"


def without_transition(name: str) -> str:
    """A file's own name, without the suffix of a transition."""
    for transition in Transition:
        name = name.removesuffix(transition.value)
    return name


def _segment_file(match: re.Match[str] | None) -> SegmentFileName | None:
    if match is None or int(match[1]) > _LARGEST_OFFSET or (match[2] and not is_uuid(match[2])):
        return None
    transition = Transition(match[4]) if match[4] else None
    return SegmentFileName(int(match[1]), SegmentPart(match[3]), match[2], transition)

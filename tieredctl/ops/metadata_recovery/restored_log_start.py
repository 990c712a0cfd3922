"""Whether a replica's log start may be put back where a plan says, by the replica's own files.

What is put back only adds: leader epochs before the first that is there, and an earlier beginning of that one, up to
which the leader had truncated them (LeaderEpochFileCache.truncateFromStart). Epochs that the replica has besides stay:
leaders that were elected since have begun them, as brokers that are stopped one after another hand over. A log start
moves down, never up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint, read_leader_epoch_checkpoint
from tieredctl.formats.file_names import PartitionFolderName, parse_partition_folder_name, partition_folder_name
from tieredctl.formats.json_lines import fields_of
from tieredctl.model.ids import TopicIdPartition, is_uuid
from tieredctl.model.result_row import Column, JsonOnly, Main, ResultRow, Wide
from tieredctl.ops.file_reading import demand_size, reading, regular_size
from tieredctl.ops.metadata_recovery.segment_judgement import Fate


class Action(StrEnum):
    """What becomes of a partition of the plan in this log directory."""

    RESTORE = "restore"
    NOTHING = "nothing"
    """It is as the plan wants it."""
    REFUSE = "refuse"
    """Its files are not those that the plan was made for."""
    UNKNOWN = "unknown"
    """The plan does not know its leader epochs."""
    NOT_HERE = "not-here"
    """It has no folder in this log directory."""


class ReplicaFiles(NamedTuple):
    """What a log directory has of a partition; None for a file that is not there, or is not what it should be."""

    topic_id: str | None
    """By the folder's own partition.metadata."""
    leader_epochs: bytes | None
    """The leader-epoch-checkpoint."""
    log_start_offset: int | None
    """By the log directory's log-start-offset-checkpoint."""


@dataclass(frozen=True, slots=True)
class LogStartRow(ResultRow):
    """A partition of the plan, as a result shows it."""

    topic: str
    topic_id: Wide[str]
    partition: int
    action: Action
    log_start_offset: Annotated[int | None, Column("LOG-START")]
    restored_log_start_offset: Annotated[int | None, Column("RESTORED")]
    leader_epoch_checkpoint: JsonOnly[str | None]
    reason: Main[str | None]


@dataclass(frozen=True, slots=True)
class JudgedReplica:
    """A partition of the plan, and what is done about it."""

    partition: TopicIdPartition
    action: Action
    reason: str = ""
    log_start_offset: int | None = None
    """As it is."""
    restored_log_start_offset: int | None = None
    """As it is to be."""
    epochs_before: bytes = b""
    epochs_after: bytes = b""
    """The leader-epoch-checkpoint, as it is and as it is to be."""

    def row(self) -> LogStartRow:
        return LogStartRow(
            *(*self.partition.names, self.action, self.log_start_offset, self.restored_log_start_offset),
            *(self.epochs_after.decode("ascii") or None, self.reason or None),
        )


def judged_replica(wanted: WantedLogStart, files: ReplicaFiles | None) -> JudgedReplica:
    """`files` is None where the log directory has no folder of the partition."""
    if files is None:
        return JudgedReplica(wanted.partition, Action.NOT_HERE, "this log directory has no folder of it")
    try:
        _demand_same_log(wanted, files)
        before = files.leader_epochs or b""
        after = _joined(_leader_epochs(before), wanted)
    except _Refused as refused:
        return JudgedReplica(wanted.partition, Action.REFUSE, str(refused), files.log_start_offset)
    is_done = files.log_start_offset == wanted.log_start_offset and after == _leader_epochs(before)
    return JudgedReplica(
        wanted.partition,
        Action.NOTHING if is_done else Action.RESTORE,
        "",
        files.log_start_offset,
        wanted.log_start_offset,
        before,
        before if after == _leader_epochs(before) else encode_leader_epoch_checkpoint(after),
    )


class _Refused(Exception):
    """A replica's files are not those that the plan was made for. The text says which, and why."""


def _demand_same_log(wanted: WantedLogStart, files: ReplicaFiles) -> None:
    if files.topic_id != wanted.partition.topic_id:
        whose = "of no known topic" if files.topic_id is None else f"of the topic id {files.topic_id}"
        raise _Refused(f"its folder is {whose}")
    if files.log_start_offset is None:
        raise _Refused("log-start-offset-checkpoint has no line of it")
    if files.log_start_offset not in (wanted.moved_to, wanted.log_start_offset):
        moved = f"its log starts at {files.log_start_offset}"
        raise _Refused(f"{moved}, and not at {wanted.moved_to} as when the plan was made")


def _leader_epochs(checkpoint: bytes) -> list[EpochEntry]:
    try:
        entries = read_leader_epoch_checkpoint(checkpoint)
        demand_ascending(entries)
    except DecodeError as error:
        raise _Refused(f"its leader-epoch-checkpoint is damaged at byte {error.position}: {error.reason}") from None
    except ValueError as error:
        raise _Refused(f"its leader-epoch-checkpoint is not usable: {error}") from None
    return entries


def _joined(present: Sequence[EpochEntry], wanted: WantedLogStart) -> list[EpochEntry]:
    """The plan's epochs up to the first that is there, then those that are there.

    Epochs after the plan's last are of leaders that were elected since. Kafka keeps no entry of an epoch without
    records once a later one begins at the same offset (LeaderEpochFileCache.assign), and a replica that lags has none
    of what it has not seen: so the plan's last ones may be missing.
    """
    if present[0].start_offset > wanted.moved_to:
        raise _Refused(f"its first leader epoch begins at {present[0].start_offset}, after its log start")
    plan = wanted.leader_epochs
    shared = [entry for entry in present if entry.epoch <= plan[-1].epoch]
    since = present[len(shared) :]
    if not shared:
        if since[0].start_offset != wanted.moved_to:
            raise _Refused("it has none of the plan's leader epochs")
        return [*(entry for entry in plan if entry.start_offset < wanted.moved_to), *since]
    first, *later = shared
    earlier = [entry for entry in plan if entry.epoch <= first.epoch]
    if not earlier or earlier[-1].epoch != first.epoch or earlier[-1].start_offset > first.start_offset:
        raise _Refused(f"its first leader epoch is {first.epoch} from offset {first.start_offset}, not as in the plan")
    planned = plan[len(earlier) :]
    missing = planned[len(later) :]
    is_replaced = not missing or not since or since[0].start_offset <= missing[0].start_offset
    if later != [*planned[: len(later)]] or not is_replaced:
        raise _Refused("its leader epochs are not those of the plan")
    return [*earlier, *later, *since]


KIND = "MetadataRecoveryPlan"
_LARGEST_BYTES = 1 << 28
_LARGEST_OFFSET = (1 << 63) - 1
_HINT = "Give what `tieredctl recover metadata -o json` wrote, without --apply."


class WantedLogStart(NamedTuple):
    """What one partition's files are to say, by the plan."""

    partition: TopicIdPartition
    log_start_offset: int
    """To be put back."""
    moved_to: int
    """Where the leader's log started when the plan was made."""
    leader_epochs: Sequence[EpochEntry]
    """Ascending; the first begins at or before the log start."""


class WantedLogStarts(NamedTuple):
    """What a plan says of all partitions."""

    cluster_id: str
    starts: Sequence[WantedLogStart]
    unknown: Sequence[TopicIdPartition]
    """The partitions whose log start moved, and for which the plan does not know how to put it back."""


def read_wanted_log_starts(path: Path) -> WantedLogStarts:
    """Raises TieredctlError `usage` for a file that `recover metadata` cannot have written, and where it cannot be
    read."""
    with reading(path):
        demand_size(path, regular_size(path), _LARGEST_BYTES, _HINT)
        data = path.read_bytes()
    try:
        fields = fields_of(data, KIND)
        cluster_id = _of_type(fields["source"]["clusterId"], str)
        items = [item for item in fields["items"] if item["restore"] is not None or item["leftOut"].get(_BELOW)]
        starts = [_wanted(item) for item in items if item["restore"] is not None]
        unknown = [_partition(item) for item in items if item["restore"] is None]
        _demand_once([*(one.partition for one in starts), *unknown])
    except (ValueError, KeyError, TypeError, AttributeError, TieredctlError):
        message = f"{path} is not a plan of recover metadata"
        raise TieredctlError(ErrorCode.USAGE, message, hint=_HINT) from None
    return WantedLogStarts(cluster_id, starts, unknown)


_BELOW = Fate.BELOW_LOG_START.value


def _wanted(item: Mapping[str, Any]) -> WantedLogStart:
    """Raises ValueError, KeyError, TypeError and DecodeError for what no plan has."""
    restore = item["restore"]
    start, moved_to = _offset(restore["logStartOffset"]), _offset(item["logStartOffset"])
    epochs = read_leader_epoch_checkpoint(_of_type(restore["leaderEpochCheckpoint"], str).encode("ascii"))
    demand_ascending(epochs)
    if not epochs[0].start_offset <= start <= moved_to:
        raise ValueError(start)
    return WantedLogStart(_partition(item), start, moved_to, tuple(epochs))


def demand_ascending(epochs: Sequence[EpochEntry]) -> None:
    """Raises ValueError unless there are leader epochs that rise, with their offsets, as Kafka writes them
    (LeaderEpochFileCache)."""
    if not epochs or epochs[0].epoch < 0 or epochs[0].start_offset < 0:
        raise ValueError("no leader epoch, or a negative one")
    for before, after in pairwise(epochs):
        if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
            raise ValueError(f"leader epoch {after.epoch} does not follow epoch {before.epoch}")


def _partition(item: Mapping[str, Any]) -> TopicIdPartition:
    topic, number = _of_type(item["topic"], str), _of_type(item["partition"], int)
    if parse_partition_folder_name(partition_folder_name(topic, number)) != PartitionFolderName(topic, number, None):
        raise ValueError(topic)
    if not is_uuid(_of_type(item["topicId"], str)):
        raise ValueError(item["topicId"])
    return TopicIdPartition(item["topicId"], topic, number)


def _demand_once(partitions: Sequence[TopicIdPartition]) -> None:
    """Raises ValueError where two are of one folder."""
    if len({(one.topic, one.partition) for one in partitions}) != len(partitions):
        raise ValueError("a partition twice")


def _offset(value: Any) -> int:
    if not 0 <= _of_type(value, int) <= _LARGEST_OFFSET:
        raise ValueError(value)
    return int(value)


def _of_type(value: Any, kind: type) -> Any:
    if type(value) is not kind:  # JSON's true is an int
        raise TypeError(value)
    return value

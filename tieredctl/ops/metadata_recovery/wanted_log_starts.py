"""The log starts that a plan of `recover metadata` wants back. The file is a claim: whether they may be put back is
decided from a node's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, read_leader_epoch_checkpoint
from tieredctl.formats.file_names import PartitionFolderName, parse_partition_folder_name, partition_folder_name
from tieredctl.formats.json_lines import fields_of
from tieredctl.model.ids import TopicIdPartition, is_uuid
from tieredctl.ops.file_reading import demand_size, reading, regular_size
from tieredctl.ops.metadata_recovery.segment_judgement import Fate

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
    """Whose log start moved, and of which the plan does not know how to put it back."""


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

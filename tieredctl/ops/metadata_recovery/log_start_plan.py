"""Plans which checkpoint files of a stopped node's log directory change when log starts are put back, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import CheckpointedOffset, encode_offset_checkpoint, read_offset_checkpoint
from tieredctl.formats.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    partition_folder_name,
)
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata_recovery.restored_log_start import (
    Action,
    JudgedReplica,
    LogStartRow,
    ReplicaFiles,
    WantedLogStarts,
    judged_replica,
)

LARGEST_CHECKPOINT_BYTES = 1 << 27
"""Some 500,000 partitions."""
_KEPT_DIGITS = 12


class ReplacedCheckpoint(NamedTuple):
    """A file, as it was read and as it is to be."""

    folder: str | None
    """The partition's in the log directory; None for a file of the log directory itself."""
    name: str
    before: bytes
    after: bytes

    @property
    def kept_as(self) -> str:
        """The name beside it under which the old file stays: the same for the same content."""
        return f"{self.name}.tieredctl-kept-{sha256(self.before).hexdigest()[:_KEPT_DIGITS]}"


class NodeLogStarts(NamedTuple):
    """What a stopped node's log directory has, as far as a plan is about it."""

    log_dir: Path
    cluster_id: str
    node_id: int | None
    checkpoint: bytes
    """Its log-start-offset-checkpoint."""
    replicas: Mapping[tuple[str, int], ReplicaFiles]
    """By topic and partition, those that have a folder here."""


@dataclass(frozen=True, slots=True)
class LogStartPlan:
    """What changes in one log directory. Nothing does, as long as a partition is refused."""

    node: NodeLogStarts
    replicas: Sequence[JudgedReplica]
    checkpoint_after: bytes
    """The log-start-offset-checkpoint as it is to be."""

    def by_action(self, action: Action) -> list[JudgedReplica]:
        """The partitions of which this becomes."""
        return [one for one in self.replicas if one.action is action]

    def to_replace(self) -> list[ReplacedCheckpoint]:
        """In the order in which they are written. A node that starts after only some of them has leader epochs from
        before its log start, and truncates them again."""
        return [*self._leader_epochs(), *self._log_starts()]

    def source(self) -> Document:
        """The node that the log directory belongs to, for documents."""
        return {"logDir": str(self.node.log_dir), "clusterId": self.node.cluster_id, "nodeId": self.node.node_id}

    def rows(self) -> list[LogStartRow]:
        """One for each partition of the plan."""
        return [one.row() for one in self.replicas]

    def summary(self) -> Document:
        """How many partitions have each action, and how many files change."""
        return {
            "partitions": len(self.replicas),
            "toRestore": len(self.by_action(Action.RESTORE)),
            "inPlace": len(self.by_action(Action.NOTHING)),
            "refused": len(self.by_action(Action.REFUSE)),
            "unknown": len(self.by_action(Action.UNKNOWN)),
            "notHere": len(self.by_action(Action.NOT_HERE)),
            "files": len(self.to_replace()),
        }

    def findings(self) -> list[Finding]:
        """None: a row says what is the matter with its partition."""
        return []

    def _leader_epochs(self) -> Iterator[ReplacedCheckpoint]:
        for one in self.by_action(Action.RESTORE):
            if one.epochs_before != one.epochs_after:
                folder = partition_folder_name(one.partition.topic, one.partition.partition)
                yield ReplacedCheckpoint(folder, LEADER_EPOCH_CHECKPOINT, one.epochs_before, one.epochs_after)

    def _log_starts(self) -> Iterator[ReplacedCheckpoint]:
        if self.node.checkpoint != self.checkpoint_after:
            yield ReplacedCheckpoint(None, LOG_START_OFFSET_CHECKPOINT, self.node.checkpoint, self.checkpoint_after)


def log_starts_in(path: Path, checkpoint: bytes) -> dict[tuple[str, int], int]:
    """The offsets of a log-start-offset-checkpoint, by topic and partition. Raises TieredctlError `undecodable` for one
    that Kafka cannot have written."""
    try:
        entries = read_offset_checkpoint(checkpoint)
    except DecodeError as error:
        raise TieredctlError(ErrorCode.UNDECODABLE, f"{path} is damaged: {error.message}.") from None
    starts = {(entry.topic, entry.partition): entry.offset for entry in entries}
    if not checkpoint or len(starts) != len(entries) or any(one.partition < 0 or one.offset < 0 for one in entries):
        what = "is empty" if not checkpoint else "names a partition twice, or has a negative number"
        raise TieredctlError(ErrorCode.UNDECODABLE, f"{path} {what}.")
    return starts


def plan_log_starts(wanted: WantedLogStarts, node: NodeLogStarts) -> LogStartPlan:
    """Decides each partition by the node's own files. Raises TieredctlError `not-a-log-dir` if none of them is here."""
    judged = [
        judged_replica(one, node.replicas.get((one.partition.topic, one.partition.partition))) for one in wanted.starts
    ]
    if judged and all(one.action is Action.NOT_HERE for one in judged):
        message = f"{node.log_dir} has none of the partitions whose log starts the plan puts back."
        hint = "Give the log directory that has them: each of a node's log directories, on each node, has its own."
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, message, hint=hint)
    unknown = [JudgedReplica(one, Action.UNKNOWN, "the plan does not know its leader epochs") for one in wanted.unknown]
    moved = {
        (one.partition.topic, one.partition.partition): one.restored_log_start_offset
        for one in judged
        if one.action is Action.RESTORE
    }
    return LogStartPlan(node, [*judged, *unknown], _with_log_starts(node.checkpoint, moved))


def _with_log_starts(checkpoint: bytes, moved: Mapping[tuple[str, int], int | None]) -> bytes:
    """The checkpoint with these lines altered; the same bytes where none is."""
    entries = read_offset_checkpoint(checkpoint)
    altered = [_altered(entry, moved.get((entry.topic, entry.partition))) for entry in entries]
    return checkpoint if altered == entries else encode_offset_checkpoint(altered)


def _altered(entry: CheckpointedOffset, offset: int | None) -> CheckpointedOffset:
    return entry if offset is None else entry._replace(offset=offset)

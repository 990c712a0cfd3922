"""Whether a replica's log start may be put back where a plan says, by the replica's own files.

What is put back only adds: leader epochs before the first that is there, and an earlier beginning of that one, up to
which the leader had truncated them (LeaderEpochFileCache.truncateFromStart). Epochs that the replica has besides stay:
leaders that were elected since have begun them, as brokers that are stopped one after another hand over. A log start
moves down, never up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint, read_leader_epoch_checkpoint
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.metadata_recovery.wanted_log_starts import WantedLogStart, demand_ascending


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

    def document(self) -> Document:
        """The row as every output format shows it."""
        return {
            **partition_document(self.partition),
            "action": self.action.value,
            "logStartOffset": self.log_start_offset,
            "restoredLogStartOffset": self.restored_log_start_offset,
            "leaderEpochCheckpoint": self.epochs_after.decode("ascii") or None,
            "reason": self.reason or None,
        }


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
    known = [entry for entry in present if entry.epoch <= plan[-1].epoch]
    since = present[len(known) :]
    if not known:
        if since[0].start_offset != wanted.moved_to:
            raise _Refused("it has none of the plan's leader epochs")
        return [*(entry for entry in plan if entry.start_offset < wanted.moved_to), *since]
    first, *later = known
    earlier = [entry for entry in plan if entry.epoch <= first.epoch]
    if not earlier or earlier[-1].epoch != first.epoch or earlier[-1].start_offset > first.start_offset:
        raise _Refused(f"its first leader epoch is {first.epoch} from offset {first.start_offset}, not as in the plan")
    planned = plan[len(earlier) :]
    missing = planned[len(later) :]
    is_replaced = not missing or not since or since[0].start_offset <= missing[0].start_offset
    if later != [*planned[: len(later)]] or not is_replaced:
        raise _Refused("its leader epochs are not those of the plan")
    return [*earlier, *later, *since]

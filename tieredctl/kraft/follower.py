"""What a leader answers a follower that fetches: records, a snapshot first, or where the two logs part.

Sources: KIP-595, KIP-630 "Handling Fetch Request", and where they differ what brokers do: KafkaRaftClient's
tryCompleteFetchRequest, RaftLog.validateOffsetAndEpoch, KafkaRaftLog.endOffsetForEpoch, LeaderEpochFileCache.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tieredctl.kraft.replica import BOOTSTRAP_SNAPSHOT, Replica, SnapshotId
from tieredctl.model.result_row import ResultRow


class Answer(StrEnum):
    """What a follower does next."""

    RECORDS = "records"
    """It gets records from its offset on."""
    SNAPSHOT = "snapshot"
    """It fetches a snapshot, and then the records after it."""
    DIVERGING = "diverging"
    """It truncates its log to an epoch's end offset, and fetches again."""


@dataclass(frozen=True, slots=True)
class FollowerAnswer(ResultRow):
    """The answer, and why it is that."""

    answer: Answer
    end_offset: int
    """The end of the snapshot or of the diverging epoch (exclusive); for records the offset that was asked for."""
    epoch: int
    reason: str


def follower_answer(replica: Replica, fetch_offset: int, last_fetched_epoch: int) -> FollowerAnswer:
    """What a leader that has this replica answers a fetch from `fetch_offset` by a follower whose last record is of
    `last_fetched_epoch`."""
    latest = replica.latest_snapshot
    reason = _why_snapshot(replica, fetch_offset, last_fetched_epoch)
    if reason is not None and latest is not None:
        return FollowerAnswer(Answer.SNAPSHOT, latest.end_offset, latest.epoch, reason)
    if replica.log_start_offset == 0 and fetch_offset == 0:
        return FollowerAnswer(Answer.RECORDS, 0, 0, "the log begins at offset 0")
    end = end_offset_for_epoch(replica, last_fetched_epoch)
    if end.epoch != last_fetched_epoch:
        reason = f"the log has no epoch {last_fetched_epoch}; up to that, its last one is {end.epoch}"
        return FollowerAnswer(Answer.DIVERGING, end.end_offset, end.epoch, reason)
    if end.end_offset < fetch_offset:
        reason = f"epoch {end.epoch} ends at offset {end.end_offset} here, before offset {fetch_offset}"
        return FollowerAnswer(Answer.DIVERGING, end.end_offset, end.epoch, reason)
    return FollowerAnswer(Answer.RECORDS, fetch_offset, last_fetched_epoch, "the log has the records before it")


def _why_snapshot(replica: Replica, offset: int, epoch: int) -> str | None:
    latest, earliest, start = replica.latest_snapshot, replica.earliest_snapshot, replica.log_start_offset
    if earliest is None:
        return None
    if offset == 0 and latest != BOOTSTRAP_SNAPSHOT:
        return "the follower's log is empty: a snapshot is quicker than the log"
    if start == 0 and offset == 0:
        return None
    if offset < start:
        return f"offset {offset} is before the log's start, {start}"
    if offset == start and epoch != earliest.epoch:
        return f"at the log's start, {start}, the epoch is {earliest.epoch}, not {epoch}"
    if epoch < earliest.epoch:
        return f"epoch {epoch} is before that of the oldest snapshot, {earliest.epoch}"
    return None


def end_offset_for_epoch(replica: Replica, epoch: int) -> SnapshotId:
    """The last epoch up to this one that the replica has, and where it ends (exclusive)."""
    ended = _in_log(replica, epoch)
    if ended is None:
        return SnapshotId(_last_epoch(replica), replica.log_end_offset)
    earliest = replica.earliest_snapshot
    if earliest is not None and ended == SnapshotId(epoch, earliest.end_offset):
        return earliest  # the log has nothing of this epoch: what it had is in the snapshot at its start
    return ended


def _in_log(replica: Replica, epoch: int) -> SnapshotId | None:
    epochs = replica.epochs
    if epochs and epochs[-1].epoch == epoch:
        return SnapshotId(epoch, replica.log_end_offset)
    later = next((one for one in epochs if one.epoch > epoch), None)
    if later is None or epoch < 0:
        return None
    reached = [one.epoch for one in epochs if one.epoch <= epoch]
    return SnapshotId(reached[-1] if reached else epoch, later.start_offset)


def _last_epoch(replica: Replica) -> int:
    if replica.epochs:
        return replica.epochs[-1].epoch
    return replica.latest_snapshot.epoch if replica.latest_snapshot else 0

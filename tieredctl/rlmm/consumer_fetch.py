"""What a leader does with a consumer's fetch (KIP-405, "Consumer Fetch Requests"; Kafka's ReplicaManager).

Where a leader continues copying to remote storage (KIP-405, "Follower to leader transition").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tieredctl.model.local_log import LeaderEpochs, LeaderLog
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.lineage import end_offset_for, epoch_for_offset


class ConsumerFetchOutcome(StrEnum):
    """Where the records come from, or why there are none."""

    LOCAL_READ = "local-read"
    REMOTE_READ = "remote-read"
    WAITS_FOR_RECORDS = "waits-for-records"
    """The offset is the log's end: the answer is empty until something is written."""
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    """The consumer goes where auto.offset.reset says."""
    LOG_TRUNCATED = "log-truncated"
    """The record that the consumer believes in was never in this line of leaders (KIP-320: it is fenced)."""


@dataclass(frozen=True, slots=True)
class ConsumerFetch:
    """The outcome, the leader epoch of the offset where the log has one, and the remote segment that is read."""

    outcome: ConsumerFetchOutcome
    leader_epoch: int | None = None
    segment: KnownSegment | None = None

    @property
    def has_records(self) -> bool:
        """Whether the consumer gets any."""
        return self.outcome in (ConsumerFetchOutcome.LOCAL_READ, ConsumerFetchOutcome.REMOTE_READ)


def consumer_fetch(
    leader: LeaderLog, remote: RemoteLogMetadataCache, offset: int, believed_epoch: int | None = None
) -> ConsumerFetch:
    """What a consumer gets for an offset.

    `believed_epoch` is the leader epoch that it has for the offset; None for one that sends none (before KIP-320). By
    the KIP such a consumer is fenced as soon as the epoch does not hold the offset; Kafka's own consumer notices only
    where the epoch, or the greatest one below it, ended before the offset.
    """
    if not leader.log_start_offset <= offset <= leader.end_offset:
        return ConsumerFetch(ConsumerFetchOutcome.OFFSET_OUT_OF_RANGE)
    epoch = epoch_for_offset(leader.leader_epochs, offset)
    if believed_epoch is not None and not _holds(leader, believed_epoch, offset):
        return ConsumerFetch(ConsumerFetchOutcome.LOG_TRUNCATED, epoch)
    if offset == leader.end_offset:
        return ConsumerFetch(ConsumerFetchOutcome.WAITS_FOR_RECORDS, epoch)
    if offset >= leader.local_log_start_offset:
        return ConsumerFetch(ConsumerFetchOutcome.LOCAL_READ, epoch)
    segment = None if epoch is None else remote.remote_log_segment_metadata(epoch, offset)
    if segment is None:
        return ConsumerFetch(ConsumerFetchOutcome.OFFSET_OUT_OF_RANGE, epoch)
    return ConsumerFetch(ConsumerFetchOutcome.REMOTE_READ, epoch, segment)


def _holds(leader: LeaderLog, epoch: int, offset: int) -> bool:
    """Whether a position at `offset` may follow records of `epoch`."""
    ended = end_offset_for(leader.leader_epochs, epoch, leader.end_offset)
    return ended is not None and ended.leader_epoch == epoch and offset <= ended.end_offset


def highest_remote_offset(leader_epochs: LeaderEpochs, end_offset: int, remote: RemoteLogMetadataCache) -> int | None:
    """The last offset (inclusive) of a line of leaders that was ever copied; None where nothing was.

    As RemoteLogManager.findHighestRemoteOffset finds it: from the latest epoch back to the first that has something in
    remote storage, and no further than that epoch reached in this line.
    """
    for epoch, _ in reversed(leader_epochs):
        highest = remote.highest_offset_for_epoch(epoch)
        if highest is not None:
            ended = end_offset_for(leader_epochs, epoch, end_offset)
            return min(highest, ended.end_offset - 1) if ended else highest
    return None

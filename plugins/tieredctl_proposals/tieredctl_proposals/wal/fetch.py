"""Who gets records from where (KIP-1176, "Replication and Download on follower broker", "Role of object storage").

A broker's disk first, then remote storage, then the WAL tier: what remote storage has may leave the WAL tier at any
moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tieredctl.model.local_log import LeaderLog
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.consumer_fetch import ConsumerFetchOutcome, consumer_fetch
from tieredctl.rlmm.lineage import epoch_for_offset
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.replayed import KnownWalSegment, WalPartition


class FetchedFrom(StrEnum):
    """Where records come from, or why there are none."""

    LOCAL = "local"
    REMOTE = "remote"
    """A segment of KIP-405's tier."""
    WAL = "wal"
    WAITS_FOR_RECORDS = "waits-for-records"
    """The offset is the log's end."""
    WAITS_FOR_UPLOAD = "waits-for-upload"
    """The leader has the records on its disk alone."""
    OFFSET_MOVED_TO_TIERED_STORAGE = "OFFSET_MOVED_TO_TIERED_STORAGE"
    """The leader's disk no longer has the offset: the follower does what KIP-405 says."""
    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    LOG_TRUNCATED = "log-truncated"


@dataclass(frozen=True, slots=True)
class WalFetch:
    """Where an offset's records come from; `wal` or `remote` is the segment that has them."""

    source: FetchedFrom
    leader_epoch: int | None = None
    wal: KnownWalSegment | None = None
    remote: KnownSegment | None = None

    @property
    def key(self) -> str | None:
        """The combined object to be read, if it is one."""
        return object_key(self.wal.combined_segment_id) if self.wal else None


_OF_CONSUMERS = {
    ConsumerFetchOutcome.LOCAL_READ: FetchedFrom.LOCAL,
    ConsumerFetchOutcome.REMOTE_READ: FetchedFrom.REMOTE,
    ConsumerFetchOutcome.WAITS_FOR_RECORDS: FetchedFrom.WAITS_FOR_RECORDS,
    ConsumerFetchOutcome.OFFSET_OUT_OF_RANGE: FetchedFrom.OFFSET_OUT_OF_RANGE,
    ConsumerFetchOutcome.LOG_TRUNCATED: FetchedFrom.LOG_TRUNCATED,
}


def consumer_wal_fetch(
    leader: LeaderLog,
    remote: RemoteLogMetadataCache,
    wal: WalPartition,
    offset: int,
    believed_epoch: int | None = None,
) -> WalFetch:
    """What a consumer gets for an offset: as with KIP-405, and from the WAL tier what neither disk nor remote storage
    has, as while a new leader rebuilds its log."""
    fetched = consumer_fetch(leader, remote, offset, believed_epoch)
    source = _OF_CONSUMERS[fetched.outcome]
    is_in_log = leader.log_start_offset <= offset < leader.end_offset
    if source is FetchedFrom.OFFSET_OUT_OF_RANGE and is_in_log and fetched.leader_epoch is not None:
        segment = wal.segment_for(fetched.leader_epoch, offset)
        if segment is not None:
            return WalFetch(FetchedFrom.WAL, fetched.leader_epoch, wal=segment)
    return WalFetch(source, fetched.leader_epoch, remote=fetched.segment)


def follower_wal_fetch(leader: LeaderLog, wal: WalPartition, offset: int) -> WalFetch:
    """Where a follower gets the records from an offset on, its own log end.

    The leader answers its fetch with offsets and without records: those it takes from the combined object that the
    metadata names, when the leader has uploaded them.
    """
    if offset < leader.log_start_offset or offset > leader.end_offset:
        return WalFetch(FetchedFrom.OFFSET_OUT_OF_RANGE)
    epoch = epoch_for_offset(leader.leader_epochs, offset)
    if offset < leader.local_log_start_offset:
        return WalFetch(FetchedFrom.OFFSET_MOVED_TO_TIERED_STORAGE, epoch)
    if offset == leader.end_offset:
        return WalFetch(FetchedFrom.WAITS_FOR_RECORDS, epoch)
    segment = None if epoch is None else wal.segment_for(epoch, offset)
    if segment is None:
        return WalFetch(FetchedFrom.WAITS_FOR_UPLOAD, epoch)
    return WalFetch(FetchedFrom.WAL, epoch, wal=segment)

"""What a follower does to replicate a tiered partition (KIP-405, "Follower fetch protocol in detail"; KIP-1023).

Decides as Kafka's AbstractFetcherThread and TierStateMachine do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tieredctl.model.local_log import LeaderEpochs, LeaderLog
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.lineage import EpochEndOffset, end_offset_for, epoch_for_offset


class FetchError(StrEnum):
    """A leader's answer to a follower's fetch instead of records, by Kafka's names."""

    OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
    OFFSET_MOVED_TO_TIERED_STORAGE = "OFFSET_MOVED_TO_TIERED_STORAGE"


class FollowerAction(StrEnum):
    """What a follower asks its leader for, or does to its own log."""

    FETCH = "fetch"
    TRUNCATE_TO = "truncate-to"
    LEARN_LATEST = "learn-latest"
    LEARN_EARLIEST = "learn-earliest"
    LEARN_EARLIEST_LOCAL = "learn-earliest-local"
    LEARN_EARLIEST_PENDING_UPLOAD = "learn-earliest-pending-upload"
    LEARN_EPOCH_END_OFFSET = "learn-epoch-end-offset"
    FIND_REMOTE_SEGMENT = "find-remote-segment"
    TRUNCATE_FULLY_AND_START_AT = "truncate-fully-and-start-at"
    BUILD_AUXILIARY_STATE = "build-auxiliary-state"
    """Leader epochs and producer snapshot out of the remote segment."""
    TRY_AGAIN = "try-again"


class FollowerWait(StrEnum):
    """Why a follower cannot begin, and tries again."""

    PENDING_UPLOAD_UNKNOWN = "pending-upload-unknown"
    """Segments are uploaded, but the leader does not report up to where: right after its election, and for as long as
    every record that it has is uploaded."""
    REMOTE_SEGMENT_UNKNOWN = "remote-segment-unknown"
    """The metadata has no segment with the offset before the one that it is to start at. With KIP-1023 that is so, too,
    where nothing was uploaded yet and the log does not begin at 0: Kafka 4.3 waits there for the first upload."""


class FollowerStep(NamedTuple):
    """One thing that a follower does. `offset` is what it asks with or learns; None where the leader has none."""

    action: FollowerAction
    offset: int | None = None
    leader_epoch: int | None = None
    segment_id: str | None = None
    error: FetchError | None = None


@dataclass(frozen=True, slots=True)
class FollowerLog:
    """A follower's own log; by default that of an empty follower. `end_offset` is exclusive."""

    end_offset: int = 0
    leader_epochs: LeaderEpochs = ()


EMPTY_FOLLOWER = FollowerLog()


@dataclass(slots=True)
class FollowerFetch:
    """How a follower gets to its first records."""

    steps: list[FollowerStep] = field(default_factory=list)
    fetch_offset: int | None = None
    """From where it replicates; None while it can only try again."""
    wait: FollowerWait | None = None
    """Why it can only try again."""
    leader_epochs: LeaderEpochs = ()
    """Its leader epochs once it has the first batch."""

    @property
    def first_error(self) -> FetchError | None:
        """The answer to its first fetch, where that is not records."""
        return next((step.error for step in self.steps if step.action is FollowerAction.FETCH), None)

    @property
    def segment_id(self) -> str | None:
        """The remote segment whose auxiliary state it builds."""
        return next((step.segment_id for step in self.steps if step.segment_id), None)


def follower_fetch(
    leader: LeaderLog,
    remote: RemoteLogMetadataCache,
    follower: FollowerLog = EMPTY_FOLLOWER,
    *,
    from_last_tiered_offset: bool = False,
) -> FollowerFetch:
    """What a follower does from its first fetch on, if nothing changes meanwhile.

    `from_last_tiered_offset` is follower.fetch.last.tiered.offset.enable (KIP-1023, Kafka 4.3), which decides for an
    empty follower alone.
    """
    way = FollowerFetch()
    _Follower(leader, remote, way, from_last_tiered_offset).replicate(follower)
    if way.fetch_offset is not None:
        way.leader_epochs = tuple((epoch, start) for epoch, start in leader.leader_epochs if start <= way.fetch_offset)
    return way


def first_fetch_error(leader: LeaderLog, offset: int) -> FetchError | None:
    """What a leader answers to a follower that fetches an offset; None where it sends records."""
    if not leader.log_start_offset <= offset <= leader.end_offset:
        return FetchError.OFFSET_OUT_OF_RANGE
    if offset < leader.local_log_start_offset:
        return FetchError.OFFSET_MOVED_TO_TIERED_STORAGE
    return None


def truncation_offset(leader: LeaderLog, follower: FollowerLog) -> int:
    """The offset up to which a follower's log is the leader's too (KIP-101; Kafka's getOffsetTruncationState)."""
    end_offset, epochs = follower.end_offset, list(follower.leader_epochs)
    while epochs:
        leaders = end_offset_for(leader.leader_epochs, epochs[-1][0], leader.end_offset)
        if leaders is None:
            return end_offset
        own = end_offset_for(epochs, leaders.leader_epoch, end_offset)
        if own is None or own.leader_epoch == leaders.leader_epoch:
            return min(end_offset, leaders.end_offset, own.end_offset if own else end_offset)
        end_offset = min(end_offset, own.end_offset)
        epochs = [(epoch, start) for epoch, start in epochs if epoch <= own.leader_epoch and start < end_offset]
    return end_offset


class _Follower:
    """Takes and notes each step. A method that returns None has no offset to fetch from; the follower retries later."""

    def __init__(self, leader: LeaderLog, remote: RemoteLogMetadataCache, way: FollowerFetch, tiered: bool) -> None:
        self._leader = leader
        self._remote = remote
        self._way = way
        self._from_last_tiered_offset = tiered

    def replicate(self, follower: FollowerLog) -> None:
        offset: int | None = truncation_offset(self._leader, follower)
        if offset != follower.end_offset:
            self._note(FollowerAction.TRUNCATE_TO, offset)
        while offset is not None:
            error = first_fetch_error(self._leader, offset)
            self._note(FollowerAction.FETCH, offset, error=error)
            if error is None:
                self._way.fetch_offset = offset
                return
            out_of_range = error is FetchError.OFFSET_OUT_OF_RANGE
            offset = self._out_of_range(offset) if out_of_range else self._moved_to_tiered_storage(offset)
        self._note(FollowerAction.TRY_AGAIN)

    def _out_of_range(self, offset: int) -> int | None:
        end, start = self._leader.end_offset, self._leader.log_start_offset
        self._note(FollowerAction.LEARN_LATEST, end)
        if self._starts_from_last_tiered_offset(offset):
            return self._last_tiered_offset()
        if end < offset:
            self._note(FollowerAction.TRUNCATE_TO, end)
            return end
        self._note(FollowerAction.LEARN_EARLIEST, start)
        return self._restart_at(start)

    def _moved_to_tiered_storage(self, offset: int) -> int | None:
        if self._starts_from_last_tiered_offset(offset):
            return self._last_tiered_offset()
        return self._build_auxiliary_state(self._learn_earliest_local())

    def _starts_from_last_tiered_offset(self, offset: int) -> bool:
        return self._from_last_tiered_offset and offset == 0 and self._leader.end_offset != 0

    def _last_tiered_offset(self) -> int | None:
        log_start, pending = self._leader.log_start_offset, self._leader.earliest_pending_upload_offset
        self._note(FollowerAction.LEARN_EARLIEST, log_start)
        self._note(FollowerAction.LEARN_EARLIEST_PENDING_UPLOAD, pending, self._epoch(pending))
        if pending is None:
            pending = self._learn_earliest_local()
            if pending != log_start:
                self._way.wait = FollowerWait.PENDING_UPLOAD_UNKNOWN
                return None
        if pending < log_start:
            return self._restart_at(self._leader.local_log_start_offset)
        return self._build_auxiliary_state(pending)

    def _learn_earliest_local(self) -> int:
        offset = self._leader.local_log_start_offset
        self._note(FollowerAction.LEARN_EARLIEST_LOCAL, offset, self._epoch(offset))
        return offset

    def _build_auxiliary_state(self, start_offset: int) -> int | None:
        """Out of the segment that holds the offset before `start_offset`."""
        last_remote = start_offset - 1
        epoch = self._epoch(start_offset) or 0
        if epoch > 0:
            epoch = self._learn_epoch_of(last_remote, epoch)
        segment = self._remote.remote_log_segment_metadata(epoch, last_remote)
        segment_id = segment.metadata.segment_id if segment else None
        self._note(FollowerAction.FIND_REMOTE_SEGMENT, last_remote, epoch, segment_id)
        if segment is None:
            self._way.wait = FollowerWait.REMOTE_SEGMENT_UNKNOWN
            return None
        offset = self._restart_at(segment.metadata.end_offset + 1)
        self._note(FollowerAction.BUILD_AUXILIARY_STATE, offset, segment_id=segment_id)
        return offset

    def _learn_epoch_of(self, offset: int, next_epoch: int) -> int:
        """The epoch of the last remote offset, where the next offset has `next_epoch`."""
        earlier = end_offset_for(self._leader.leader_epochs, next_epoch - 1, self._leader.end_offset)
        earlier = earlier or EpochEndOffset(next_epoch, 0)
        self._note(FollowerAction.LEARN_EPOCH_END_OFFSET, earlier.end_offset, earlier.leader_epoch)
        return earlier.leader_epoch if earlier.end_offset > offset else next_epoch

    def _restart_at(self, offset: int) -> int:
        self._note(FollowerAction.TRUNCATE_FULLY_AND_START_AT, offset)
        return offset

    def _epoch(self, offset: int | None) -> int | None:
        return None if offset is None else epoch_for_offset(self._leader.leader_epochs, offset)

    def _note(
        self,
        action: FollowerAction,
        offset: int | None = None,
        leader_epoch: int | None = None,
        segment_id: str | None = None,
        error: FetchError | None = None,
    ) -> None:
        self._way.steps.append(FollowerStep(action, offset, leader_epoch, segment_id, error))

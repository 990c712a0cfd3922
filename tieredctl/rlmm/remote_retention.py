"""The remote segments that a broker would delete: by retention and by the log start, along the leader's lineage.

As RemoteLogManager.RLMExpirationTask.cleanupExpiredRemoteLogSegments decides it in Kafka 3.9 to 4.3.

Which segments a broker would delete from its own disk: by local retention, once they are in remote storage.

As UnifiedLog.deleteOldSegments decides it in Kafka 3.9 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from tieredctl.model.events import STORED_STATES, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.local_log import LeaderEpochs, LeaderLog, LocalSegment
from tieredctl.rlmm.cache import RemoteLogMetadataCache


class Breach(StrEnum):
    """Why a segment would be deleted."""

    LOG_START_OFFSET = "log-start-offset"
    RETENTION_MS = "retention-ms"
    RETENTION_BYTES = "retention-bytes"


class Retention(NamedTuple):
    """Total retention: ms and bytes, -1 for no limit."""

    ms: int
    bytes: int


class ExpiredSegment(NamedTuple):
    """A segment that would be deleted, and why."""

    metadata: RemoteLogSegmentMetadata
    breach: Breach


def expired_segments(
    cache: RemoteLogMetadataCache, log: LeaderLog, only_local_bytes: int, retention: Retention, now_ms: int
) -> list[ExpiredSegment]:
    """The segments that the leader's next pass would delete, oldest first.

    `only_local_bytes` is what the leader has on disk in segments that begin after the highest remote offset. A pass
    ends at the first segment that is kept.
    """
    epochs = dict(_with_records(log.leader_epochs))
    excess = _excess_bytes(cache, log, epochs, only_local_bytes, retention.bytes)
    expired: dict[str, ExpiredSegment] = {}
    for segment in _by_epoch(cache, epochs):
        if segment.segment_id in expired:
            continue
        breach = _below_log_start(segment, log, epochs)
        is_valid = breach is None and is_within_leader_epochs(segment, log.end_offset, epochs)
        if is_valid:
            if retention.ms >= 0 and segment.max_timestamp_ms <= now_ms - retention.ms:
                breach = Breach.RETENTION_MS
            elif 0 < excess >= segment.segment_size_in_bytes:
                breach = Breach.RETENTION_BYTES
        if breach is not None:
            expired[segment.segment_id] = ExpiredSegment(segment, breach)
            excess -= segment.segment_size_in_bytes if breach is Breach.RETENTION_BYTES else 0
        elif is_valid:
            break
    return list(expired.values())


def is_within_leader_epochs(segment: RemoteLogSegmentMetadata, log_end_offset: int, epochs: Mapping[int, int]) -> bool:
    """Whether a segment belongs to the leader's lineage: each of its epochs is known and has its offsets there
    (RemoteLogManager.isRemoteSegmentWithinLeaderEpochs). Epochs before the first that is known may be cut off."""
    own = _with_records(segment.segment_leader_epochs)
    sorted_epochs = sorted(epochs)
    if not own or not sorted_epochs or not sorted_epochs[0] <= own[-1][0] <= sorted_epochs[-1]:
        return False
    for index, (epoch, offset) in enumerate(own):
        if epoch < sorted_epochs[0]:
            continue
        if epoch not in epochs or (epoch != sorted_epochs[0] and offset < epochs[epoch]):
            return False
        following = next((epochs[one] for one in sorted_epochs if one > epoch), None)
        end = own[index + 1][1] if index + 1 < len(own) else segment.end_offset + 1
        if following is not None and end > following:
            return False
    return segment.end_offset < log_end_offset


def _with_records(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    """Without epochs under which nothing was written: the next one begins where they do."""
    following = [*(offset for _, offset in epochs[1:]), None]
    return [(epoch, offset) for (epoch, offset), after in zip(epochs, following, strict=True) if offset != after]


def _by_epoch(cache: RemoteLogMetadataCache, epochs: Mapping[int, int]) -> Iterator[RemoteLogSegmentMetadata]:
    for epoch in sorted(epochs):
        for segment in cache.list_remote_log_segments(epoch):
            if segment.metadata.state is not RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
                yield segment.metadata


def _excess_bytes(
    cache: RemoteLogMetadataCache, log: LeaderLog, epochs: Mapping[int, int], only_local_bytes: int, limit: int
) -> int:
    """How far the size exceeds retention.bytes; 0 without such a limit. Copies that never finished are not
    counted (before 3.8.0 they were: KAFKA-17359)."""
    if limit < 0:
        return 0
    counted = {
        segment.segment_id: segment.segment_size_in_bytes
        for segment in _by_epoch(cache, epochs)
        if segment.state in STORED_STATES and is_within_leader_epochs(segment, log.end_offset, epochs)
    }
    return max(0, sum(counted.values()) + only_local_bytes - limit)


def _below_log_start(segment: RemoteLogSegmentMetadata, log: LeaderLog, epochs: Mapping[int, int]) -> Breach | None:
    """A segment wholly below the log start, as after DeleteRecords."""
    first = min(epochs, default=None)
    is_below = (
        first is not None
        and all(epoch <= first for epoch, _ in segment.segment_leader_epochs)
        and segment.end_offset < log.log_start_offset
    )
    return Breach.LOG_START_OFFSET if is_below else None


class LocalBreach(StrEnum):
    """Why a local segment would be deleted."""

    LOG_START_OFFSET = "log-start-offset"
    LOCAL_RETENTION_BYTES = "local-retention-bytes"
    LOCAL_RETENTION_MS = "local-retention-ms"


class DueSegment(NamedTuple):
    """A segment that would be deleted, its last offset (inclusive), and why."""

    segment: LocalSegment
    end_offset: int
    breach: LocalBreach


class DueSegments(NamedTuple):
    """What the next pass would delete, oldest first, and what a later one would, once it is in remote storage."""

    now: Sequence[DueSegment]
    once_tiered: Sequence[DueSegment]


@dataclass(frozen=True, slots=True)
class LocalSegments:
    """A disk's segments, oldest first; the last one is active. `highest_remote_offset` is inclusive, None where nothing
    is remote; it decides nothing where `waits_for_copies` is False (remote.log.copy.disable)."""

    segments: Sequence[LocalSegment]
    log: LeaderLog
    highest_remote_offset: int | None
    waits_for_copies: bool = True

    def due(self, retention: Retention, now_ms: int) -> DueSegments:
        """`retention` is what applies to the disk: local retention with -2 resolved, in ms and bytes, -1 for no limit.

        An active segment that is due is closed first, and deleted after its copy.
        """
        deletable = self._passes(retention, now_ms, self._may_go)
        every = self._passes(retention, now_ms, lambda _: True)
        return DueSegments(deletable, every[len(deletable) :])

    def _passes(self, retention: Retention, now_ms: int, may_go: Callable[[int], bool]) -> list[DueSegment]:
        """By log start, then by size, then by time: each continues where the one before stopped."""
        due: list[DueSegment] = []
        ends = [*(later.base_offset for _, later in pairwise(self.segments)), self.log.end_offset]

        def take(breach: LocalBreach, is_due: Callable[[LocalSegment, int], bool]) -> None:
            for segment, end in list(zip(self.segments, ends, strict=True))[len(due) :]:
                is_empty = end <= segment.base_offset
                if is_empty or end > self.log.end_offset or not (is_due(segment, end) and may_go(end)):
                    return
                due.append(DueSegment(segment, end - 1, breach))

        start = self.log.local_log_start_offset
        is_active_at = self.segments[-1].base_offset if self.segments else 0
        take(LocalBreach.LOG_START_OFFSET, lambda one, end: end <= start and one.base_offset != is_active_at)
        excess = sum(one.size for one in self.segments[len(due) :]) - retention.bytes

        def breaches_size(segment: LocalSegment, _: int) -> bool:
            nonlocal excess
            if retention.bytes < 0 or excess - segment.size < 0:
                return False
            excess -= segment.size
            return True

        take(LocalBreach.LOCAL_RETENTION_BYTES, breaches_size)
        take(
            LocalBreach.LOCAL_RETENTION_MS,
            lambda one, _: retention.ms >= 0 and now_ms - one.largest_timestamp_ms > retention.ms,
        )
        return due

    def _may_go(self, end: int) -> bool:
        """Whether all before `end` is in remote storage, or was deleted (isSegmentEligibleForDeletion)."""
        if not self.waits_for_copies or self.log.log_start_offset >= end:
            return True
        return self.highest_remote_offset is not None and end - 1 <= self.highest_remote_offset

"""Which remote segments a broker would delete: by retention and by the log start, along the leader's lineage.

As RemoteLogManager.RLMExpirationTask.cleanupExpiredRemoteLogSegments decides it in Kafka 3.9 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from tieredctl.model.events import STORED_STATES, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.leader_log import LeaderLog
from tieredctl.model.local_log import LeaderEpochs
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
    known = sorted(epochs)
    if not own or not known or not known[0] <= own[-1][0] <= known[-1]:
        return False
    for index, (epoch, offset) in enumerate(own):
        if epoch < known[0]:
            continue
        if epoch not in epochs or (epoch != known[0] and offset < epochs[epoch]):
            return False
        following = next((epochs[one] for one in known if one > epoch), None)
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
        for known in cache.list_remote_log_segments(epoch):
            if known.metadata.state is not RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
                yield known.metadata


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

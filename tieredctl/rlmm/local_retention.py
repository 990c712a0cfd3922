"""Which segments a broker would delete from its own disk: by local retention, once they are in remote storage.

As UnifiedLog.deleteOldSegments decides it in Kafka 3.9 to 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from tieredctl.model.leader_log import LeaderLog
from tieredctl.model.local_replica import LocalSegment
from tieredctl.rlmm.remote_retention import Retention


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

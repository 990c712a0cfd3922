"""What local retention would delete from brokers' disks: by log directories, or by the metadata for leaders' disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.local_log import LeaderLog, LocalReplica, LocalSegment
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, SizeOrUnknown, Wide
from tieredctl.model.size_sum import SizeSum
from tieredctl.rlmm.cache import RemoteLogMetadataCache, segments_in_use
from tieredctl.rlmm.consumer_fetch import highest_remote_offset
from tieredctl.rlmm.remote_retention import Breach, DueSegment, DueSegments, LocalBreach, LocalSegments, Retention


@dataclass(frozen=True, slots=True)
class ExpiredRow(ResultRow):
    """A segment that would be deleted, in remote storage or on a disk."""

    topic: JsonOnly[str]
    partition: int
    tier: str
    segment_id: Annotated[str | None, Column(after="breach")]
    start_offset: Annotated[int, Column("START")]
    end_offset: Annotated[int, Column("END")]
    segment_size_in_bytes: SizeOrUnknown
    max_timestamp_ms: JsonOnly[int]
    breach: Breach | LocalBreach
    log_dir: Wide[str | None]


@dataclass(frozen=True, slots=True)
class LocalEstimate:
    """What would be deleted of a partition's replica. `log_dir` is None for the leader's, estimated by the metadata."""

    log_dir: str | None
    due: DueSegments
    is_exact: bool = True
    """Whether the metadata has the sizes of all its segments: otherwise the active one was given what others have."""

    def size(self, segments: Iterable[DueSegment]) -> SizeSum:
        """The size of some of those due, together."""
        sizes = [one.segment.size for one in segments]
        return SizeSum(sum(sizes), self.is_exact or not sizes)

    def rows(self, topic: str, partition: int) -> Iterator[ExpiredRow]:
        """One row per segment, with the columns of remote ones; only those that the next pass would delete."""
        for segment, end_offset, breach in self.due.now:
            yield ExpiredRow(
                *(topic, partition, "local", None, segment.base_offset, end_offset),
                *(segment.size if self.is_exact or segment.size else None, segment.largest_timestamp_ms),
                *(breach, self.log_dir),
            )


def local_estimates(
    remote: RemoteLogMetadataCache,
    log: LeaderLog,
    first_offset: int,
    local_bytes: int,
    replicas: Sequence[LocalReplica] | None,
    *,
    retention: Retention,
    now_ms: int,
    waits_for_copies: bool,
) -> list[LocalEstimate]:
    """An estimate for each of `replicas`; without any, for the leader's disk, which has `local_bytes` from
    `first_offset` on. Its segments are assumed to be the remote ones, as they are where the leader copied them."""
    highest = highest_remote_offset(log.leader_epochs, log.end_offset, remote)
    disks: list[tuple[str | None, Sequence[LocalSegment]]]
    if replicas is None:
        used = (one for one in segments_in_use(remote) if one.start_offset >= first_offset)
        used_in_order = sorted(used, key=lambda one: one.start_offset)
        disks = [(None, _by_metadata(used_in_order, first_offset, local_bytes, now_ms))]
        is_exact = all(one.known_size is not None for one in used_in_order)
    else:
        disks = [(replica.folder, replica.segments) for replica in replicas]
        is_exact = True
    return [
        LocalEstimate(log_dir, LocalSegments(segments, log, highest, waits_for_copies).due(retention, now_ms), is_exact)
        for log_dir, segments in disks
    ]


def _by_metadata(
    remote_segments: Sequence[RemoteLogSegmentMetadata], first_offset: int, local_bytes: int, now_ms: int
) -> list[LocalSegment]:
    """The remote segments from an offset on, and one active segment, of now, with the rest of the bytes."""
    segments = [LocalSegment(one.start_offset, one.known_size or 0, one.max_timestamp_ms) for one in remote_segments]
    behind = remote_segments[-1].end_offset + 1 if remote_segments else first_offset
    rest = max(0, local_bytes - sum(segment.size for segment in segments))
    return [*segments, LocalSegment(behind, rest, now_ms)]

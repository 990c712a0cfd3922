"""What local retention would delete from brokers' disks: by log directories, or by the metadata for leaders' disks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tieredctl.model.leader_log import LeaderLog
from tieredctl.model.local_replica import LocalReplica, LocalSegment
from tieredctl.ops.documents import Document
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.copy_start import highest_remote_offset
from tieredctl.rlmm.local_retention import DueSegments, LocalSegments
from tieredctl.rlmm.remote_bytes import segments_in_use
from tieredctl.rlmm.remote_retention import Retention


@dataclass(frozen=True, slots=True)
class LocalEstimate:
    """What would be deleted of a partition's replica. `log_dir` is None for the leader's, estimated by the metadata."""

    log_dir: str | None
    due: DueSegments

    def rows(self, partition: int) -> Iterator[Document]:
        """One row per segment, with the columns of remote ones; only those that the next pass would delete."""
        for segment, end_offset, breach in self.due.now:
            yield {
                "partition": partition,
                "tier": "local",
                "segmentId": None,
                "startOffset": segment.base_offset,
                "endOffset": end_offset,
                "segmentSizeInBytes": segment.size,
                "maxTimestampMs": segment.largest_timestamp_ms,
                "breach": breach.value,
                "logDir": self.log_dir,
            }


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
        disks = [(None, _by_metadata(remote, first_offset, local_bytes, now_ms))]
    else:
        disks = [(replica.folder, replica.segments) for replica in replicas]
    return [
        LocalEstimate(log_dir, LocalSegments(segments, log, highest, waits_for_copies).due(retention, now_ms))
        for log_dir, segments in disks
    ]


def _by_metadata(
    remote: RemoteLogMetadataCache, first_offset: int, local_bytes: int, now_ms: int
) -> list[LocalSegment]:
    """The remote segments from an offset on, and one active segment, of now, with the rest of the bytes."""
    known = sorted(
        (one for one in segments_in_use(remote) if one.start_offset >= first_offset), key=lambda one: one.start_offset
    )
    segments = [LocalSegment(one.start_offset, one.known_size or 0, one.max_timestamp_ms) for one in known]
    behind = known[-1].end_offset + 1 if known else first_offset
    rest = max(0, local_bytes - sum(segment.size for segment in segments))
    return [*segments, LocalSegment(behind, rest, now_ms)]

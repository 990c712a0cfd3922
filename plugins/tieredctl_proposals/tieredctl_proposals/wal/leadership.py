"""What a partition's leader does with what other leaders uploaded (KIP-1176, "Leader Failover and Recovery")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.local_log import LeaderLog
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.remote_retention import is_within_leader_epochs
from tieredctl_proposals.wal.deletion import segment_deletions
from tieredctl_proposals.wal.replayed import KnownWalSegment, WalPartition
from tieredctl_proposals.wal.steps import Publish


def segments_beyond(wal: WalPartition, leader: LeaderLog) -> list[KnownWalSegment]:
    """The segments that a leader's own log does not have: beyond its end, or of leaders that it does not descend from.

    A segment that only begins in its log is among them: events are about whole segments, and the leader uploads the
    part that it has again.
    """
    beyond = (one for one in wal.segments.values() if _is_beyond(one.metadata, leader))
    return sorted(beyond, key=lambda one: (one.metadata.start_offset, one.segment_id))


def _is_beyond(segment: RemoteLogSegmentMetadata, leader: LeaderLog) -> bool:
    if segment.end_offset >= leader.end_offset:
        return True
    first_known = min((epoch for epoch, _ in leader.leader_epochs), default=None)
    if first_known is None or segment.segment_leader_epochs[-1][0] < first_known:
        return False  # of leaders that the log start has passed: nothing speaks against it
    return not is_within_leader_epochs(segment, leader.end_offset, dict(leader.leader_epochs))


def deletions_beyond(
    wal: WalPartition, leader: LeaderLog, *, broker_id: int, leader_epoch: int, clock_ms: Callable[[], int]
) -> Iterator[Publish]:
    """The DELETE events that a new leader publishes about them. Their objects stay: they hold other segments too."""
    beyond = segments_beyond(wal, leader)
    for state in (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED):
        yield from segment_deletions(beyond, state, broker_id=broker_id, leader_epoch=leader_epoch, clock_ms=clock_ms)


def upload_from(wal: WalPartition, tiered: RemoteLogMetadataCache, leader: LeaderLog) -> int:
    """The first offset that a leader has to upload: the first on its disk that neither tier has of its line."""
    uploaded = [one.metadata for one in wal.segments.values() if one.is_readable]
    uploaded += [
        one.metadata
        for one in tiered.list_remote_log_segments()
        if one.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    ]
    offset = leader.local_log_start_offset
    for first, last in uploaded_ranges(uploaded, leader):
        if first <= offset:
            offset = max(offset, last + 1)
    return offset


def uploaded_ranges(segments: Iterable[RemoteLogSegmentMetadata], leader: LeaderLog) -> list[tuple[int, int]]:
    """The offsets, inclusive, that segments have of a leader's line of leaders: rising, with gaps between."""
    epochs = dict(leader.leader_epochs)
    own = (one for one in segments if is_within_leader_epochs(one, leader.end_offset, epochs))
    return joined_ranges((one.start_offset, one.end_offset) for one in own)


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of offsets, inclusive, where those that meet are one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined

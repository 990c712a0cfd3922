"""How much of a partition's log both tiers have, by looking up one offset after another."""

from __future__ import annotations

from tieredctl_proposals.wal.replayed import WalPartition

from tieredctl.model.local_log import LeaderEpochs
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.lineage import epoch_for_offset


def recoverable_end(
    wal: WalPartition, tiered: RemoteLogMetadataCache, leader_epochs: LeaderEpochs, start_offset: int
) -> int:
    """Up to where (exclusive) a broker that has nothing can rebuild a partition from both tiers, from an offset on.

    `leader_epochs` is the line of leaders to follow.
    """
    offset = start_offset
    while (epoch := epoch_for_offset(leader_epochs, offset)) is not None:
        end = _end_of(wal, tiered, epoch, offset)
        if end is None:
            break
        offset = min([end, *(first for _, first in leader_epochs if first > offset)])
    return offset


def _end_of(wal: WalPartition, tiered: RemoteLogMetadataCache, epoch: int, offset: int) -> int | None:
    """The offset after the segment that has an offset of an epoch."""
    in_tier = tiered.remote_log_segment_metadata(epoch, offset)
    in_wal = wal.segment_for(epoch, offset)
    ends = [one.metadata for one in (in_tier, in_wal) if one is not None]
    return max((_last_of_epoch(one.epoch_ranges(), epoch) + 1 for one in ends), default=None)


def _last_of_epoch(ranges: list[tuple[int, int, int]], epoch: int) -> int:
    return next(last for number, _, last in ranges if number == epoch)

"""Questions to a line of leader epochs, as Kafka's LeaderEpochFileCache answers them."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from tieredctl.model.local_log import LeaderEpochs


class EpochEndOffset(NamedTuple):
    """Where a leader epoch ended: the offset after the last one written under it."""

    leader_epoch: int
    end_offset: int


def epoch_for_offset(lineage: LeaderEpochs, offset: int) -> int | None:
    """The leader epoch that an offset was or will be written under; None below the first that is known."""
    reached = [epoch for epoch, start in lineage if start <= offset]
    return reached[-1] if reached else None


def end_offset_for(lineage: LeaderEpochs, epoch: int, log_end_offset: int) -> EpochEndOffset | None:
    """The answer to OffsetForLeaderEpoch: the greatest known epoch that is not above `epoch`, and where it ended.

    Below the first known epoch the answer is `epoch` itself, ending where that one began. None above the last.
    """
    following = bisect_right([epoch_begun for epoch_begun, _ in lineage], epoch)
    floor_epoch = lineage[following - 1][0] if following else epoch
    if following < len(lineage):
        return EpochEndOffset(floor_epoch, lineage[following][1])
    return EpochEndOffset(epoch, log_end_offset) if lineage and floor_epoch == epoch else None

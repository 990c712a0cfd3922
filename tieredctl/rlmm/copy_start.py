"""Where a leader continues copying to remote storage (KIP-405, "Follower to leader transition")."""

from __future__ import annotations

from tieredctl.model.local_log import LeaderEpochs
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.lineage import end_offset_for


def highest_remote_offset(leader_epochs: LeaderEpochs, end_offset: int, remote: RemoteLogMetadataCache) -> int | None:
    """The last offset (inclusive) of a line of leaders that was ever copied; None where nothing was.

    As RemoteLogManager.findHighestRemoteOffset finds it: from the latest epoch back to the first that has something in
    remote storage, and no further than that epoch reached in this line.
    """
    for epoch, _ in reversed(leader_epochs):
        highest = remote.highest_offset_for_epoch(epoch)
        if highest is not None:
            ended = end_offset_for(leader_epochs, epoch, end_offset)
            return min(highest, ended.end_offset - 1) if ended else highest
    return None

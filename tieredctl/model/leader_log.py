"""A partition as its leader has it."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.model.local_log import LeaderEpochs


@dataclass(frozen=True, slots=True)
class LeaderLog:
    """Where a leader's log begins, in remote storage and on its disk, and where it ends. All are offsets.

    `earliest_pending_upload_offset` is the first that is in no remote segment yet (ListOffsets -6, KIP-1023); None
    where the leader answers -1, or does not support the request.
    """

    log_start_offset: int
    local_log_start_offset: int
    end_offset: int
    """Exclusive: the offset of the next record."""
    leader_epochs: LeaderEpochs
    earliest_pending_upload_offset: int | None = None

    def __post_init__(self) -> None:
        if not self.log_start_offset <= self.local_log_start_offset <= self.end_offset:
            raise ValueError(f"not a log: {self}")

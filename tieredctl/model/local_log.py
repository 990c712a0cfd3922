"""A partition as a broker's disk has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LeaderEpochs = Sequence[tuple[int, int]]
"""(leader epoch, first offset of it), ascending: one line of succession."""


@dataclass(frozen=True, slots=True)
class LocalLog:
    """What a broker's log directory says about a partition.

    `local_start_offset` is the base of the first local segment; `log_start_offset` the first offset that consumers may
    read, wherever it is stored, None where the broker's checkpoint does not say.
    """

    leader_epochs: LeaderEpochs
    local_start_offset: int
    log_start_offset: int | None

"""The leader epoch that owns an offset of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from tieredctl.model.local_log import LeaderEpochs
from tieredctl.ops.metadata.state import lookup
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.lineage import epoch_for_offset


class LineageSource(StrEnum):
    """Who knows the line of leaders."""

    LEADER = "leader"
    CHECKPOINT = "leader-epoch-checkpoint"
    SEGMENTS = "segments"
    """Those in remote storage, of which each knows its own offsets alone."""


class Lineage(NamedTuple):
    """A partition's leader epochs, and who knows them."""

    leader_epochs: LeaderEpochs
    source: LineageSource


class OwnerOfOffset(NamedTuple):
    """The leader epoch that owns an offset; None with the reason why it cannot be told."""

    leader_epoch: int | None
    source: LineageSource
    why_unknown: str | None = None


def owner_of_offset(cache: RemoteLogMetadataCache, offset: int, lineages: Sequence[Lineage]) -> OwnerOfOffset:
    """By the first of the lineages that reaches down to it, without one by the segments: where these leave a choice,
    none is made. A checkpoint says nothing where segments have a later leader epoch: its replica was left behind."""
    starts = _epoch_starts(cache)
    for lineage in lineages:
        epoch = epoch_for_offset(lineage.leader_epochs, offset)
        if epoch is not None and not _is_outdated(lineage, offset, starts):
            return OwnerOfOffset(epoch, lineage.source)
    return _owner_by_segments(cache, offset, starts)


def epochs_with(cache: RemoteLogMetadataCache, offset: int) -> list[int]:
    """The leader epochs under which a segment serves a fetch of an offset, ascending."""
    return [epoch for epoch in cache.epochs() if cache.remote_log_segment_metadata(epoch, offset) is not None]


def _epoch_starts(cache: RemoteLogMetadataCache) -> dict[int, int]:
    """The first offset that a segment has of each leader epoch."""
    starts: dict[int, int] = {}
    for segment in cache.list_remote_log_segments():
        for epoch, start, _ in segment.metadata.epoch_ranges():
            starts[epoch] = min(start, starts.get(epoch, start))
    return starts


def _is_outdated(lineage: Lineage, offset: int, starts: dict[int, int]) -> bool:
    last, _ = lineage.leader_epochs[-1]
    is_of_leader = lineage.source is LineageSource.LEADER
    return not is_of_leader and any(epoch > last and start <= offset for epoch, start in starts.items())


def _owner_by_segments(cache: RemoteLogMetadataCache, offset: int, starts: dict[int, int]) -> OwnerOfOffset:
    latest = max((epoch for epoch, start in starts.items() if start <= offset), default=None)
    why: str | None
    holding = epochs_with(cache, offset)
    if len(holding) > 1:
        why = f"leader epochs {' and '.join(map(str, holding))} have segments with offset {offset}"
    elif latest is None:
        why = f"no segment begins at offset {offset} or below"
    elif not holding:  # a leader epoch without segments may own it
        why = lookup(cache, latest, offset).reason
    elif holding != [latest]:
        why = (
            f"leader epoch {holding[0]} has a segment with offset {offset}, "
            f"but leader epoch {latest} begins at {starts[latest]}"
        )
    else:
        return OwnerOfOffset(latest, LineageSource.SEGMENTS)
    return OwnerOfOffset(None, LineageSource.SEGMENTS, why)

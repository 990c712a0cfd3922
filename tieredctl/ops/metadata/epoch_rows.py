"""What the leader epochs of a partition have in remote storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, JsonOnly, ResultRow
from tieredctl.rlmm.cache import RemoteLogMetadataCache


@dataclass(frozen=True, slots=True)
class EpochRow(ResultRow):
    """What a leader epoch has in remote storage. `gaps` and `overlaps` are lists of [first, last], offsets inclusive; a
    gap lies between two segments of the same epoch."""

    topic: JsonOnly[str]
    topic_id: JsonOnly[str]
    partition: JsonOnly[int]
    leader_epoch: int
    start_offset: Annotated[int | None, Column("START")]
    end_offset: Annotated[int | None, Column("END")]
    highest_offset_for_epoch: Annotated[int | None, Column("HIGHEST")]
    segments: int
    gaps: list[list[int]]
    overlaps: list[list[int]]


def leader_epochs(partition: TopicIdPartition, cache: RemoteLogMetadataCache) -> Iterator[EpochRow]:
    """A row for each leader epoch of a partition."""
    for epoch in cache.epochs():
        of_epoch = cache.list_remote_log_segments(epoch)
        ranges = sorted(
            (start, end)
            for segment in of_epoch
            if segment.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
            for e, start, end in segment.metadata.epoch_ranges()
            if e == epoch
        )
        start, end = ranges[0][0] if ranges else None, max((end for _, end in ranges), default=None)
        highest = cache.highest_offset_for_epoch(epoch)
        yield EpochRow(*partition.names, epoch, start, end, highest, len(of_epoch), *_gaps_and_overlaps(ranges))


def _gaps_and_overlaps(ranges: list[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    gaps: list[list[int]] = []
    overlaps: list[list[int]] = []
    reached: int | None = None
    for start, end in ranges:
        if reached is not None and start > reached + 1:
            gaps.append([reached + 1, start - 1])
        elif reached is not None and start <= reached:
            overlaps.append([start, min(reached, end)])
        reached = end if reached is None else max(reached, end)
    return gaps, overlaps

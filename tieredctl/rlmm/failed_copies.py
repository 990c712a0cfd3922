"""Copies that failed and are tried again, by columns.

From Kafka 3.8.1 on a leader whose copy fails deletes what it left, and begins again with another segment id
(RemoteLogManager.copyLogSegment): such a segment is deleted without ever having reached COPY_SEGMENT_FINISHED.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns, joined_uuids
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.event_columns import EventColumns
from tieredctl.rlmm.event_contents import StartedCopies

_COPIED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True)
class FailedCopies:
    """A row for each segment whose deletion began and whose copy never finished."""

    segment_ids: UuidColumns
    partitions: NDArray[np.int32]
    """Rows of `SegmentEvents.partitions`."""
    starts: NDArray[np.int32]
    """The event that the copy began with: a row of `EventContents.starts`."""
    offsets: Ints
    """Where that event is in its metadata partition."""

    def at(self, rows: Ints) -> FailedCopies:
        """Some of them."""
        return FailedCopies(self.segment_ids.at(rows), *(getattr(self, one.name)[rows] for one in fields(self)[1:]))


@dataclass(frozen=True, slots=True)
class EndedCopies:
    """How copies ended, in some events."""

    failed: FailedCopies
    finished_partitions: NDArray[np.int32]
    finished_offsets: Ints
    """The events by which copies finished: about which partition, and where they are in their metadata partition."""


@dataclass(frozen=True, slots=True)
class FailingCopy:
    """A partition whose last copies all failed, at one offset. Offsets are inclusive, times in ms since the epoch."""

    partition: TopicIdPartition
    segment_id: str
    """The segment id of the last try; each has its own."""
    start_offset: int
    end_offset: int
    author: int
    """Who tried last."""
    tries: int
    since_ms: int
    last_ms: int
    """When the first and the last of them began."""


def ended_copies(events: EventColumns, taken: Flags, begins: Ints, starts: Ints) -> EndedCopies:
    """Of events that stand together by segment from the rows `begins` on, each of which began with `starts`."""
    is_finish = taken & (events.states == _COPIED)
    finishes = np.flatnonzero(is_finish)
    if len(begins):
        is_delete = taken & (events.states > _COPIED)
        has_failed = np.logical_or.reduceat(is_delete, begins) & ~np.logical_or.reduceat(is_finish, begins)
        starts = starts[has_failed]
    return EndedCopies(
        FailedCopies(
            events.segment_ids.at(starts),
            events.partitions[starts],
            events.contents[starts],
            events.metadata_offsets[starts],
        ),
        events.partitions[finishes],
        events.metadata_offsets[finishes],
    )


def joined_failures(parts: Sequence[FailedCopies]) -> FailedCopies:
    """One after the other; at least one."""
    columns = (np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(FailedCopies)[1:])
    return FailedCopies(joined_uuids([part.segment_ids for part in parts]), *columns)


def failing_copies(
    failed: FailedCopies,
    finished: Ints,
    contents: StartedCopies,
    partitions: Sequence[TopicIdPartition],
    at_least: int,
) -> list[FailingCopy]:
    """The partitions of which no copy finished since at least so many failed at one offset. `finished` has each
    partition's last event by which a copy finished, -1 where there is none; an offset that was tried before the last
    does not count."""
    since = failed.at(np.flatnonzero(failed.offsets > finished[failed.partitions]))
    since = since.at(np.lexsort((since.offsets, since.partitions)))
    if not len(since.starts):
        return []
    changes = np.append(since.partitions[1:] != since.partitions[:-1], True)
    lasts = np.flatnonzero(changes)
    group = np.cumsum(np.append(False, changes[:-1]))
    offsets = contents.start_offsets.values[since.starts]
    same = np.flatnonzero(offsets == offsets[lasts][group])
    tries = np.bincount(group[same], minlength=len(lasts))
    firsts = same[np.searchsorted(group[same], np.arange(len(lasts)))]
    chosen = tries >= at_least
    last, times = since.at(lasts[chosen]), contents.said.event_timestamps.values
    columns = (
        last.segment_ids.texts(),
        contents.start_offsets.values[last.starts].tolist(),
        contents.end_offsets.values[last.starts].tolist(),
        contents.said.authors.values[last.starts].tolist(),
        tries[chosen].tolist(),
        times[since.starts[firsts[chosen]]].tolist(),
        times[last.starts].tolist(),
    )
    numbers = last.partitions.tolist()
    return [FailingCopy(partitions[number], *row) for number, *row in zip(numbers, *columns, strict=True)]

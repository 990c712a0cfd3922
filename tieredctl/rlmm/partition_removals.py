"""How the removal of partitions affects the events about their segments, by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemotePartitionDeleteState
from tieredctl.rlmm.event_columns import EventColumns
from tieredctl.rlmm.segment_events import PartitionDelete

_FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED


@dataclass(frozen=True, slots=True)
class Lives:
    """For each event, in which life of its partition it came: each finished removal ends a life. From the first on,
    events are refused: no broker takes them, even when the partition is reported as removed again."""

    numbers: Ints
    refused: Flags
    are_last: Flags
    """Whether it is the partition's current life."""

    def at(self, rows: Ints) -> Lives:
        """The lives of some events."""
        return Lives(self.numbers[rows], self.refused[rows], self.are_last[rows])


class PartitionRemovals:
    """The events about the removal of partitions, and where they stand among others."""

    def __init__(self, deletes: Sequence[PartitionDelete], partitions: int) -> None:
        """`partitions` is how many there are."""
        self._columns = np.array([tuple(map(int, one)) for one in deletes], np.int64).reshape(-1, 4)
        self._ends: Flags = np.zeros(partitions, np.bool_)
        """Whether each partition has a finished removal."""
        self._ends[self._columns[self._columns[:, 3] == _FINISHED, 0]] = True

    def lives(self, events: EventColumns) -> Lives:
        """The lives that events about segments came in."""
        count = len(events)
        lives = Lives(np.zeros(count, np.int64), np.zeros(count, np.bool_), np.ones(count, np.bool_))
        if not self._ends.any():
            return lives
        rows = np.flatnonzero(self._ends[events.partitions])
        if len(rows):
            self._fill(lives, events, rows)
        return lives

    def _fill(self, lives: Lives, events: EventColumns, rows: Ints) -> None:
        deletes = self._columns[self._ends[self._columns[:, 0]]]
        of_events = (events.partitions[rows], events.metadata_partitions[rows], events.metadata_offsets[rows])
        partitions, metadata_partitions, offsets = (
            np.concatenate([np.asarray(mine, np.int64), theirs])
            for mine, theirs in zip(of_events, deletes[:, :3].T, strict=True)
        )
        states = np.concatenate([np.full(len(rows), -1), deletes[:, 3]])
        order = np.lexsort((offsets, metadata_partitions, partitions))
        partitions, states = partitions[order], states[order]
        numbers = np.cumsum(states == _FINISHED)
        before = np.maximum.accumulate(np.where(states == _FINISHED, np.arange(len(states)), -1))
        refused = (before >= 0) & (partitions[before] == partitions)
        last_of_partition = np.searchsorted(partitions, partitions, side="right") - 1
        are_last = numbers == numbers[last_of_partition]
        _put_back(lives.numbers, rows, order, numbers)
        _put_back(lives.refused, rows, order, refused)
        _put_back(lives.are_last, rows, order, are_last)


def _put_back(target: NDArray[Any], rows: Ints, order: Ints, values: NDArray[Any]) -> None:
    """Values in an order, of which the first are of these rows, into them."""
    unordered = np.empty_like(values)
    unordered[order] = values
    target[rows] = unordered[: len(rows)]

"""Which copies that never ended were abandoned: another one of the same offsets began later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.windows import Flags, Ints

_NEAR = 64


class Copies(NamedTuple):
    """The events that began copies, one per row. Offsets are inclusive."""

    partitions: NDArray[np.int32]
    metadata_offsets: Ints
    start_offsets: Ints
    end_offsets: Ints

    def at(self, rows: Ints) -> Copies:
        """Some of them."""
        columns = self.partitions[rows], self.metadata_offsets[rows]
        return Copies(*columns, self.start_offsets[rows], self.end_offsets[rows])


def superseded_copies(copies: Copies, all_copies: Copies) -> Flags:
    """For each event that began a copy, whether another of its partition that overlaps it began later.

    `all_copies` are all such events of those partitions. A leader tries again what it could not copy before it goes
    on, so that the other copy is nearly always among the next that began.
    """
    superseded = np.zeros(len(copies.partitions), np.bool_)
    if not len(copies.partitions):
        return superseded
    others = all_copies.at(np.lexsort((all_copies.metadata_offsets, all_copies.partitions)))
    later, ends = _later(copies, others)
    open_ = np.flatnonzero(later < ends)
    for step in range(_NEAR):
        found = _overlap(copies, open_, others, later[open_] + step)
        superseded[open_[found]] = True
        open_ = open_[~found]
        open_ = open_[later[open_] + step + 1 < ends[open_]]
    for row in open_.tolist():
        rest = np.arange(later[row] + _NEAR, ends[row])
        superseded[row] = _overlap(copies, np.array([row]), others, rest).any()
    return superseded


def _later(copies: Copies, others: Copies) -> tuple[Ints, Ints]:
    """For each copy, which of the others began later in its partition: from where on, and up to where."""
    edges = np.searchsorted(others.partitions, np.arange(int(others.partitions.max(initial=-1)) + 2))
    # Ranks instead of offsets, so that both fit into one number that rises.
    offsets = np.unique(others.metadata_offsets)
    places = others.partitions * (len(offsets) + 1) + np.searchsorted(offsets, others.metadata_offsets)
    ranks = np.searchsorted(offsets, copies.metadata_offsets, side="right")
    later = np.searchsorted(places, copies.partitions * (len(offsets) + 1) + ranks)
    return later, edges[copies.partitions + 1]


def _overlap(copies: Copies, rows: Ints, others: Copies, other_rows: Ints) -> Flags:
    overlap: Flags = (others.start_offsets[other_rows] <= copies.end_offsets[rows]) & (
        others.end_offsets[other_rows] >= copies.start_offsets[rows]
    )
    return overlap

"""Finds the segments that objects' keys name among those that the metadata knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns
from tieredctl.formats.uuid_lookup import NOT_FOUND, UuidLookup, grouped
from tieredctl.formats.windows import Flags, Ints
from tieredctl.rlmm.segment_rows import SegmentRows


class KnownSegments:
    """Rows by segment id and partition: nothing keeps two partitions from claiming one id."""

    def __init__(self, rows: SegmentRows) -> None:
        self._partitions = rows.partitions
        self._order: Ints | None = None
        """Of each id that is looked up; None where there is one for each row."""
        self._shared: dict[tuple[int, bytes], int] = {}
        ids = rows.segment_ids
        if not _are_all_different(ids):
            order, grouped_ids = grouped(ids)
            first = grouped_ids.changes()
            self._shared = _shared(rows, order, first)
            self._order = order[first]
            ids = grouped_ids.at(np.flatnonzero(first))
        self._lookup = UuidLookup(ids)

    def rows_of(self, ids: UuidColumns, names: Ints, partitions: NDArray[np.int32]) -> Ints:
        """The row of each object, by the place of its segment's id among `ids` and its partition; NOT_FOUND where the
        metadata does not know the segment."""
        found = self._lookup.rows_of(ids)
        if self._order is not None:
            found = np.where(found == NOT_FOUND, NOT_FOUND, self._order[found])
        rows = found[names]
        if not len(self._partitions):
            return rows
        others = np.flatnonzero((rows != NOT_FOUND) & (self._partitions[rows] != partitions))
        rows[others] = [
            self._shared.get((int(partitions[place]), ids.bytes_of(int(names[place]))), NOT_FOUND)
            if self._shared
            else NOT_FOUND
            for place in others.tolist()
        ]
        return rows


def _are_all_different(ids: UuidColumns) -> bool:
    """Whether they come in the order of their hashes, as they do after a replay, and none comes twice."""
    hashes = ids.hashes()
    return bool((hashes[1:] > hashes[:-1]).all())


def _shared(rows: SegmentRows, order: Ints, first: Flags) -> dict[tuple[int, bytes], int]:
    """The rows with an id that another row has too."""
    again = ~first
    again[:-1] |= ~first[1:]
    shared = order[again]
    return {(int(rows.partitions[row]), rows.segment_ids.bytes_of(row)): row for row in shared.tolist()}

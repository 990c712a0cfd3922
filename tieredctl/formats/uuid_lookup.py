"""Finds many ids among many others, in a table that is built once."""

from __future__ import annotations

import numpy as np

from tieredctl.formats.uuid_columns import UuidColumns
from tieredctl.formats.windows import Flags, Ints

NOT_FOUND = -1
_HASH_BITS = 64


class UuidLookup:
    """Rows by id.

    Rows are laid out in buckets, about one per row, by the upper bits of their ids' hashes. All ids that
    are looked for step through their buckets together, which are seldom longer than a few rows.
    """

    def __init__(self, ids: UuidColumns) -> None:
        """`ids` are all different."""
        self._shift = np.uint64(_HASH_BITS - max(len(ids).bit_length(), 1))
        buckets = self._buckets(ids)
        self._ids = ids
        self._rows: Ints | None = None
        """Of each of `_ids`; None where they came by bucket already."""
        if (buckets[1:] < buckets[:-1]).any():
            self._rows = np.argsort(buckets, kind="stable")
            self._ids = ids.at(self._rows)
        sizes = np.bincount(buckets, minlength=1 << (_HASH_BITS - int(self._shift)))
        self._edges = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes, dtype=np.int32, out=self._edges[1:])

    def rows_of(self, ids: UuidColumns) -> Ints:
        """The row of each id; NOT_FOUND where there is none."""
        found = np.full(len(ids), NOT_FOUND, np.int64)
        buckets = self._buckets(ids)
        places, ends = self._edges[buckets].astype(np.int64), self._edges[buckets + 1]
        open_ = np.flatnonzero(places < ends)
        while len(open_):
            here = places[open_]
            hits = self._ids.at(here).equal(ids.at(open_))
            found[open_[hits]] = here[hits] if self._rows is None else self._rows[here[hits]]
            open_ = open_[~hits]
            places[open_] += 1
            open_ = open_[places[open_] < ends[open_]]
        return found

    def _buckets(self, ids: UuidColumns) -> Ints:
        return (ids.hashes() >> self._shift).astype(np.int64)


class UuidSet:
    """Ids to which many others are compared."""

    def __init__(self, ids: UuidColumns) -> None:
        _, ids = grouped(ids)
        self._lookup = UuidLookup(ids.at(np.flatnonzero(ids.changes())))

    def has(self, ids: UuidColumns) -> Flags:
        """Which of some ids are among these."""
        found: Flags = self._lookup.rows_of(ids) != NOT_FOUND
        return found


def grouped(ids: UuidColumns) -> tuple[Ints, UuidColumns]:
    """A stable order of the rows in which equal ids are adjacent; and the ids in this order.

    Hashes are sorted with the number of the row in their lower bits, so that only numbers are moved.
    """
    row_bits = np.uint64(len(ids).bit_length())
    keys = (ids.hashes() >> row_bits << row_bits) | np.arange(len(ids), dtype=np.uint64)
    keys.sort()
    order = (keys & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.int64)
    by_hash = ids.at(order)
    prefixes = keys >> row_bits
    clashes = by_hash.changes()[1:] & (prefixes[1:] == prefixes[:-1])
    if clashes.any():
        clashing = np.flatnonzero(np.isin(prefixes, prefixes[1:][clashes]))
        rows = order[clashing]
        order[clashing] = rows[np.lexsort((rows, ids.low[rows], ids.high[rows], prefixes[clashing]))]
        by_hash = ids.at(order)
    return order, by_hash

"""Objects that were written, until a listing of the destination shows what it holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tieredctl.ops.store_copy.comparison import paired
from tieredctl.ops.store_copy.copying import CopiedObject
from tieredctl.ops.store_copy.difference import Difference
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved


class WrittenObjects:
    """Which objects of a difference were written. In memory is a byte for each of the difference."""

    def __init__(self, difference: Difference) -> None:
        self._difference = difference
        self._are_written = np.zeros(difference.objects, np.bool_)
        self.objects = 0

    def add(self, turn: int) -> None:
        """The object whose turn to be copied this was, from 0 on."""
        self._are_written[self._difference.order[turn]] = True
        self.objects += 1

    def shown_by(self, destination: ObjectStore) -> Iterator[CopiedObject | None]:
        """Those that a listing, begun now, shows under the source's version; they are none of these afterwards. None
        for each other object that is listed."""
        rows = np.flatnonzero(self._are_written)
        numbers = iter(rows.tolist())
        for pair in paired(self._difference.at(rows), list_unreserved(destination)):
            row = None if pair.source is None else next(numbers)
            if pair.source is None or pair.destination is None or not _is_the_same(pair.source, pair.destination):
                yield None
                continue
            self._are_written[row] = False
            self.objects -= 1
            yield CopiedObject.shown_by_listing(pair.source)

    def taken(self) -> Iterator[StoredObject]:
        """All of these, by ascending key; there are none afterwards."""
        rows = np.flatnonzero(self._are_written)
        self._are_written[:] = False
        self.objects = 0
        return self._difference.at(rows)


def _is_the_same(written: StoredObject, listed: StoredObject) -> bool:
    return listed.size == written.size and listed.version == written.version

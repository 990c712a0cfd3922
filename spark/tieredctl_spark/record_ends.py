"""Which offsets of a partition's part in remote storage can be read, and which are gone."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import NamedTuple

from tieredctl.model.findings import Finding
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.lost_records import Loss
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import Isolation
from tieredctl.records.transaction_indexes import TransactionIndexes
from tieredctl.rlmm.cache import DeletedOffsets


class Readable(NamedTuple):
    """A partition, and the offsets from `first` up to, not including, `end` that consumers may read of it."""

    remote: RemotePartition
    first: int
    end: int
    doubt: Finding | None = None
    """Why more of it may be readable: what tells where the last transactions end could not be read."""

    def gone(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """What of the offsets from `begin` up to, not including, `end` is no longer in remote storage. Offsets that no
        segment holds although nothing deleted them are damage, and met by whoever reads."""
        met = DeletedOffsets([hole.offsets for hole in self.remote.holes(begin, end - 1) if hole.offsets])
        for hole in replace(self.remote, read_up_to=begin).holes(begin, end - 1):
            if hole.offsets is not None:
                yield from met.not_among(*hole.offsets)


def readable(remote: RemotePartition, store: ObjectStore, layout: SegmentObjects, isolation: Isolation) -> Readable:
    """What can be read of a partition. Raises TieredctlError where the store answers nothing.

    With `read_committed`, the end is before the first transaction whose end is not in remote storage, as the last
    segment tells that serves up to its own end and whose producer snapshot can be read: what follows it has to wait
    for another segment.
    """
    if remote.first_offset is None or remote.end_offset is None:
        highest = remote.deleted.highest
        first = 0 if highest is None else highest + 1
        return Readable(remote, first, first)
    if isolation is Isolation.READ_UNCOMMITTED:
        return Readable(remote, remote.first_offset, remote.end_offset)
    losses: list[Loss] = []
    end = max(_last_stable(remote, store, layout, losses), remote.first_offset)
    return Readable(remote, remote.first_offset, end, losses[0].finding if losses else None)


def _last_stable(remote: RemotePartition, store: ObjectStore, layout: SegmentObjects, losses: list[Loss]) -> int:
    """Adds what could not be read to `losses`, that of the last segment first."""
    indexes = TransactionIndexes(store, layout, remote.spans)
    for number, span in reversed([*enumerate(remote.spans)]):
        still_open = _value(indexes.open_after(number), losses) if span.reaches_end else None
        if still_open is not None:
            return min([span.last + 1, *still_open.values()])
    return 0


def _value(looked_up: Generator[Loss, None, dict[int, int] | None], losses: list[Loss]) -> dict[int, int] | None:
    while True:
        try:
            losses.append(next(looked_up))
        except StopIteration as found:
            return found.value  # type: ignore[no-any-return]

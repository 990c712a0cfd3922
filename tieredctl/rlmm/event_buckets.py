"""Any number of events, divided so that all events of a segment are together, among few others.

What is done to a bucket then fits into the processor's cache, and needs no memory beyond that of all events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.rlmm.event_columns import EventColumns, joined_events

_PART_EVENTS = 1 << 18
_BUCKET_EVENTS = 1 << 16
_FINE_BUCKETS = 1 << 8
_SHIFT = np.uint64(64 - 8)


@dataclass(frozen=True)
class _Part:
    """Events by fine bucket: by the first bits of their segment ids' hashes. A bucket's events begin at its edge."""

    events: EventColumns
    edges: Ints

    def of_partition(self, number: int) -> EventColumns:
        """Events about segments of one partition, in no order."""
        order, edges = self._by_partition
        if number + 1 >= len(edges):
            return self.events.between(0, 0)
        return self.events.at(order[edges[number] : edges[number + 1]])

    @cached_property
    def _by_partition(self) -> tuple[Ints, Ints]:
        counts = np.bincount(self.events.partitions)
        return np.argsort(self.events.partitions, kind="stable"), np.concatenate([[0], np.cumsum(counts)])


@dataclass(slots=True)
class EventBuckets:
    """Takes events, and returns them by bucket, any number of times."""

    _parts: list[_Part] = field(default_factory=list)
    _pending: list[EventColumns] = field(default_factory=list)
    _pending_events: int = 0

    def add(self, events: EventColumns) -> None:
        """Adds events; those of a segment stay in the order in which they are added."""
        self._pending.append(events)
        self._pending_events += len(events)
        if self._pending_events >= _PART_EVENTS:
            self._close_part()

    def __len__(self) -> int:
        """How many events."""
        return sum(len(part.events) for part in self._parts) + self._pending_events

    def __iter__(self) -> Iterator[EventColumns]:
        self._close_part()
        step = self._step()
        for first in range(0, _FINE_BUCKETS, step):
            yield joined_events(
                [part.events.between(int(part.edges[first]), int(part.edges[first + step])) for part in self._parts]
            )

    def of_partition(self, number: int) -> EventColumns:
        """The events about segments of one partition, by metadata partition, then offset."""
        self._close_part()
        return joined_events([part.of_partition(number) for part in self._parts]).in_order()

    def starts(self) -> EventColumns:
        """The events that copies begin with, by metadata partition, then offset."""
        return joined_events([events.at(np.flatnonzero(events.starts)) for events in self]).in_order()

    def _step(self) -> int:
        """How many fine buckets make one of a useful size."""
        step, events = _FINE_BUCKETS, len(self)
        while step > 1 and events * step // _FINE_BUCKETS > _BUCKET_EVENTS:
            step //= 2
        return step

    def _close_part(self) -> None:
        if self._pending:
            if self._parts and len(self._parts[-1].events) < _PART_EVENTS:
                self._pending.insert(0, self._parts.pop().events)
            self._parts.append(_bucketed(self._pending))
            self._pending, self._pending_events = [], 0


def _bucketed(pending: Sequence[EventColumns]) -> _Part:
    events = joined_events(pending)
    buckets = (events.segment_ids.hashes() >> _SHIFT).astype(np.uint8)
    edges = np.concatenate([[0], np.cumsum(np.bincount(buckets, minlength=_FINE_BUCKETS))])
    return _Part(events.at(np.argsort(buckets, kind="stable")), edges)

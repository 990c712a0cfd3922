"""Events about segments, one per row, with what decides the state in which a segment ends.

Any number of events, divided so that all events of a segment are together, among few others.

What is done to a bucket then fits into the processor's cache, and needs no memory beyond that of all events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns, joined_uuids, uuid_columns
from tieredctl.formats.windows import Flags, Ints

_NO_PARTITION = -1


@dataclass(frozen=True, slots=True)
class EventColumns:
    """A row for each event."""

    segment_ids: UuidColumns
    partitions: NDArray[np.int32]
    """Rows of `SegmentEvents.partitions`."""
    starts: Flags
    """Whether the event begins a copy."""
    states: NDArray[np.int8]
    contents: NDArray[np.int32]
    """The rest of its content: a row of `EventContents.starts` or `.updates`."""
    metadata_partitions: NDArray[np.int32]
    metadata_offsets: Ints

    def __len__(self) -> int:
        return len(self.partitions)

    @classmethod
    def blank(cls, metadata_partition: int, metadata_offsets: Ints) -> EventColumns:
        """A row for each record of a chunk, into which events are put."""
        count = len(metadata_offsets)
        return cls(
            UuidColumns(np.zeros(count, np.uint64), np.zeros(count, np.uint64)),
            np.full(count, _NO_PARTITION, np.int32),
            np.zeros(count, np.bool_),
            np.zeros(count, np.int8),
            np.zeros(count, np.int32),
            np.full(count, metadata_partition, np.int32),
            metadata_offsets,
        )

    def put(
        self,
        rows: Ints,
        segment_ids: NDArray[np.void],
        partitions: NDArray[Any],
        states: NDArray[Any],
        contents: NDArray[Any],
        *,
        starts: bool,
    ) -> None:
        """Events about segments of these partitions; ids are of 16 bytes."""
        ids = uuid_columns(segment_ids)
        self.segment_ids.high[rows], self.segment_ids.low[rows] = ids.high, ids.low
        self.partitions[rows], self.states[rows], self.contents[rows] = partitions, states, contents
        self.starts[rows] = starts

    def filled(self) -> EventColumns:
        """The rows that an event was put into."""
        filled = self.partitions != _NO_PARTITION
        return self if filled.all() else self.at(np.flatnonzero(filled))

    def at(self, rows: Ints) -> EventColumns:
        """Some rows."""
        return EventColumns(self.segment_ids.at(rows), *(column[rows] for column in self._numbers()))

    def between(self, first: int, end: int) -> EventColumns:
        """The rows from one up to, not including, another; not a copy."""
        high, low = self.segment_ids.high[first:end], self.segment_ids.low[first:end]
        return EventColumns(UuidColumns(high, low), *(column[first:end] for column in self._numbers()))

    def in_order(self) -> EventColumns:
        """The events by metadata partition, then offset."""
        return self.at(np.lexsort((self.metadata_offsets, self.metadata_partitions)))

    def _numbers(self) -> tuple[NDArray[Any], ...]:
        return (
            self.partitions,
            self.starts,
            self.states,
            self.contents,
            self.metadata_partitions,
            self.metadata_offsets,
        )


def joined_events(parts: Sequence[EventColumns]) -> EventColumns:
    """One after the other."""
    if len(parts) == 1:
        return parts[0]
    parts = parts or [EventColumns.blank(0, np.zeros(0, np.int64))]
    columns = (np.concatenate(same) for same in zip(*(part._numbers() for part in parts), strict=True))
    return EventColumns(joined_uuids([part.segment_ids for part in parts]), *columns)


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

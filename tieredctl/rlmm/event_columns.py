"""Events about segments, one per row, with what decides the state in which a segment ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
        """By metadata partition, then offset."""
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

"""Where events say that segments are: in which combined object, and in which of its bytes; in columns that grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tieredctl.formats.columns import Columns
from tieredctl.formats.uuid_columns import UuidColumns, uuid_columns
from tieredctl.formats.windows import Ints
from tieredctl.model.ids import uuid_bytes
from tieredctl.rlmm.event_contents import Column, Rows
from tieredctl_proposals.model.wal_events import FileRange, RemoteLogSegmentMetadataEntry, WalSegmentEvent

_HALVES, _POSITIONS, _NUMBERS = (partial(Column, dtype) for dtype in (np.uint64, np.int64, np.int32))


@dataclass(slots=True)
class IdColumn:
    """Ids that grow in number."""

    _high: Column = field(default_factory=_HALVES)
    _low: Column = field(default_factory=_HALVES)

    def add(self, ids: UuidColumns) -> None:
        """More ids."""
        self._high.add(ids.high)
        self._low.add(ids.low)

    def at(self, rows: Rows) -> UuidColumns:
        """The ids of some rows."""
        return UuidColumns(self._high.values[rows], self._low.values[rows])


@dataclass(slots=True)
class RangeColumn:
    """File ranges: both ends inclusive, NO_POSITION before the upload."""

    starts: Column = field(default_factory=_POSITIONS)
    ends: Column = field(default_factory=_POSITIONS)

    def add(self, columns: Columns) -> None:
        """Adds the ranges of decoded columns."""
        self.starts.add(columns["StartFilePosition"])
        self.ends.add(columns["EndFilePosition"])

    def add_one(self, one: FileRange) -> None:
        """Adds the range of one value."""
        self.starts.add([one.start_file_position])
        self.ends.add([one.end_file_position])


@dataclass(slots=True)
class Placements:
    """A row for each event about a segment, of either kind."""

    objects: IdColumn = field(default_factory=IdColumn)
    coordinators: Column = field(default_factory=_NUMBERS)
    leader_epochs: Column = field(default_factory=_NUMBERS)
    ranges: RangeColumn = field(default_factory=RangeColumn)

    def add(self, columns: Columns) -> None:
        """Adds the placements of decoded columns."""
        self.objects.add(uuid_columns(columns["CombinedSegmentId"]))
        self.coordinators.add(columns["CombinedCoordinatorPartition"])
        self.leader_epochs.add(columns["LeaderEpoch"])
        self.ranges.add(columns)

    def add_one(self, event: WalSegmentEvent) -> None:
        """Adds the placement of one event."""
        self.objects.add(_one_id(event.combined_segment_id))
        self.coordinators.add([event.combined_coordinator_partition])
        self.leader_epochs.add([event.leader_epoch])
        self.ranges.add_one(event)


@dataclass(slots=True)
class Entries:
    """The segments of combined objects, as events about these list them: those of an event one after another."""

    counts: Column = field(default_factory=_NUMBERS)
    """How many entries each event has."""
    partitions: Column = field(default_factory=_NUMBERS)
    """Rows of `WalEvents.partitions`."""
    segment_ids: IdColumn = field(default_factory=IdColumn)
    ranges: RangeColumn = field(default_factory=RangeColumn)

    def add(self, counts: Ints, partitions: Rows, columns: Columns) -> None:
        """Adds the entries of several events, by decoded columns."""
        self.counts.add(counts)
        self.partitions.add(partitions)
        self.segment_ids.add(uuid_columns(columns["RemoteLogSegmentId.Id"]))
        self.ranges.add(columns)

    def add_one(self, partitions: list[int], entries: tuple[RemoteLogSegmentMetadataEntry, ...]) -> None:
        """Adds the entries of one event."""
        self.counts.add([len(entries)])
        self.partitions.add(partitions)
        for entry in entries:
            self.segment_ids.add(_one_id(entry.segment_id))
            self.ranges.add_one(entry)

    def rows_of(self, events: Rows) -> tuple[Ints, Ints]:
        """The rows of the entries of some events, and which of these events each is of, by its place among them."""
        counts = self.counts.values[events].astype(np.int64)
        owners = np.repeat(np.arange(len(counts)), counts)
        firsts = self.counts.ends[events] - counts
        inside = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        return firsts[owners] + inside, owners


def _one_id(text: str) -> UuidColumns:
    return uuid_columns(np.frombuffer(uuid_bytes(text), "V16"))

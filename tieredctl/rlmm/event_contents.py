"""The content of events about segments, apart from segment and state, one per row, in columns that grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.byte_spans import packed
from tieredctl.formats.columns import NULL, Lists, Spans
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.windows import Bytes, Flags, Ints
from tieredctl.model.events import (
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    TaggedField,
)

Rows = NDArray[Any]
"""Numbers of rows."""
_FORMS = tuple(RecordForm)


class Column:
    """An array of numbers that grows."""

    def __init__(self, dtype: Any) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype)
        self._count = 0
        self._ends: Ints | None = None

    def add(self, values: Any) -> None:
        """More numbers."""
        count = self._count + len(values)
        if count > len(self._room):
            room = np.empty(max(count, 2 * len(self._room)), self._room.dtype)
            room[: self._count] = self.values
            self._room = room
        self._room[self._count : count] = values
        self._count = count
        self._ends = None

    @property
    def values(self) -> NDArray[Any]:
        """All of them."""
        return self._room[: self._count]

    def at(self, rows: Rows) -> Column:
        """Some of them; none where none is kept."""
        column = Column(self._room.dtype)
        if self._count:
            column.add(self.values[rows])
        return column

    @property
    def ends(self) -> Ints:
        """The ends of stretches of these lengths that follow one another."""
        if self._ends is None:
            self._ends = np.cumsum(self.values, dtype=np.int64)
        return self._ends


_OFFSETS, _NUMBERS, _SMALL_NUMBERS, _FLAGS = (
    partial(Column, dtype) for dtype in (np.int64, np.int32, np.int8, np.bool_)
)


@dataclass(slots=True)
class SomeBytes:
    """Byte strings of those rows that have one."""

    _rows: Column = field(default_factory=_OFFSETS)
    _lengths: Column = field(default_factory=_NUMBERS)
    _data: bytearray = field(default_factory=bytearray)

    def add(self, first_row: int, data: Bytes, spans: Spans) -> None:
        """Adds spans of data, which belong to the rows from `first_row` on."""
        present = np.flatnonzero(spans.starts != NULL)
        if len(present):
            starts, ends = spans.starts[present], spans.ends[present]
            self._rows.add(first_row + present)
            self._lengths.add(ends - starts)
            self._data += packed(data, starts, ends)

    def add_one(self, row: int, value: bytes | None) -> None:
        """Sets that of one row, if it has one."""
        if value is not None:
            self._rows.add([row])
            self._lengths.add([len(value)])
            self._data += value

    def are_of(self, rows: Rows) -> Flags:
        """Whether some rows have one."""
        rows_with_bytes = self._rows.values
        if not len(rows_with_bytes):
            return np.zeros(len(rows), np.bool_)
        have_bytes: Flags = (
            rows_with_bytes[np.minimum(np.searchsorted(rows_with_bytes, rows), len(rows_with_bytes) - 1)] == rows
        )
        return have_bytes

    def at(self, rows: Rows) -> SomeBytes:
        """The strings of some rows, which rise."""
        taken, places = SomeBytes(), np.flatnonzero(self.are_of(rows))
        strings = [one or b"" for one in self.of(rows[places])]
        taken._rows.add(places)
        taken._lengths.add([len(one) for one in strings])
        taken._data += b"".join(strings)
        return taken

    def of(self, rows: Rows) -> list[bytes | None]:
        """The strings of some rows; None for a row without one."""
        rows_with_bytes = self._rows.values
        if not len(rows_with_bytes):
            return [None] * len(rows)
        places = np.minimum(np.searchsorted(rows_with_bytes, rows), len(rows_with_bytes) - 1)
        have_bytes = (rows_with_bytes[places] == rows).tolist()
        ends = self._lengths.ends[places]
        firsts, lasts = (ends - self._lengths.values[places]).tolist(), ends.tolist()
        return [
            bytes(self._data[first:last]) if is_found else None
            for is_found, first, last in zip(have_bytes, firsts, lasts, strict=True)
        ]


@dataclass(slots=True)
class _Said:
    """What every event has."""

    authors: Column = field(default_factory=_NUMBERS)
    event_timestamps: Column = field(default_factory=_OFFSETS)
    """In milliseconds since the epoch."""
    customs: SomeBytes = field(default_factory=SomeBytes)

    def add(self, first_row: int, data: Bytes, group: EventGroup) -> None:
        self.add_origins(group)
        if "CustomMetadata" in group.columns:
            self.customs.add(first_row, data, group.columns["CustomMetadata"])

    def add_origins(self, group: EventGroup) -> None:
        """By whom and when, alone."""
        self.authors.add(group.columns["BrokerId"])
        self.event_timestamps.add(group.columns["EventTimestampMs"])

    def add_one(self, row: int, event: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate) -> None:
        self.add_origin(event)
        self.customs.add_one(row, event.custom_metadata)

    def add_origin(self, event: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate) -> None:
        self.authors.add([event.author])
        self.event_timestamps.add([event.event_timestamp_ms])

    def at(self, rows: Rows) -> _Said:
        return _Said(self.authors.at(rows), self.event_timestamps.at(rows), self.customs.at(rows))

    def by(self, rows: Rows) -> Iterator[dict[str, Any]]:
        """The content of some rows, by the names of an event's fields."""
        authors, times = self.authors.values[rows].tolist(), self.event_timestamps.values[rows].tolist()
        for author, event_timestamp_ms, custom in zip(authors, times, self.customs.of(rows), strict=True):
            yield {"author": author, "event_timestamp_ms": event_timestamp_ms, "custom_metadata": custom}


@dataclass(slots=True)
class StartedCopies:
    """The content of events that begin copies. Offsets are inclusive; everything else but origins is only kept
    if described."""

    is_described: bool
    said: _Said = field(default_factory=_Said)
    start_offsets: Column = field(default_factory=_OFFSETS)
    end_offsets: Column = field(default_factory=_OFFSETS)
    max_timestamps: Column = field(default_factory=_OFFSETS)
    sizes: Column = field(default_factory=_NUMBERS)
    txn_idx_empty: Column = field(default_factory=_FLAGS)
    forms: Column = field(default_factory=_SMALL_NUMBERS)
    epoch_counts: Column = field(default_factory=_NUMBERS)
    leader_epochs: Column = field(default_factory=_NUMBERS)
    """The leader epochs of all rows, one after another, like the offsets that they begin with."""
    epoch_offsets: Column = field(default_factory=_OFFSETS)
    tagged_fields: dict[int, tuple[TaggedField, ...]] = field(default_factory=dict)
    _count: int = 0

    def add(self, data: Bytes, group: EventGroup) -> NDArray[np.int32]:
        """Adds a group's events, and returns their rows."""
        first, columns = self._count, group.columns
        self._count += len(group.rows)
        self.start_offsets.add(columns["StartOffset"])
        self.end_offsets.add(columns["EndOffset"])
        if self.is_described:
            self.said.add(first, data, group)
            self.max_timestamps.add(columns["MaxTimestampMs"])
            self.sizes.add(columns["SegmentSizeInBytes"])
            self.txn_idx_empty.add(columns.get("TxnIndexEmpty", np.zeros(len(group.rows), np.bool_)))
            self.forms.add(np.full(len(group.rows), _FORMS.index(group.form), np.int8))
            epochs: Lists = columns["SegmentLeaderEpochs"]
            self.epoch_counts.add(np.diff(epochs.bounds))
            self.leader_epochs.add(epochs.elements["LeaderEpoch"])
            self.epoch_offsets.add(epochs.elements["Offset"])
        else:
            self.said.add_origins(group)
        return np.arange(first, self._count, dtype=np.int32)

    def add_one(self, event: RemoteLogSegmentMetadata) -> NDArray[np.int32]:
        """Adds one event that was not decoded by columns."""
        row = self._count
        self._count += 1
        self.start_offsets.add([event.start_offset])
        self.end_offsets.add([event.end_offset])
        if self.is_described:
            self.said.add_one(row, event)
            self.max_timestamps.add([event.max_timestamp_ms])
            self.sizes.add([event.segment_size_in_bytes])
            self.txn_idx_empty.add([event.txn_idx_empty])
            self.forms.add([_FORMS.index(event.form)])
            self.epoch_counts.add([len(event.segment_leader_epochs)])
            self.leader_epochs.add([epoch for epoch, _ in event.segment_leader_epochs])
            self.epoch_offsets.add([offset for _, offset in event.segment_leader_epochs])
            if event.tagged_fields:
                self.tagged_fields[row] = event.tagged_fields
        else:
            self.said.add_origin(event)
        return np.array([row], np.int32)

    def at(self, rows: Rows) -> StartedCopies:
        """Some rows, which rise."""
        taken = StartedCopies(self.is_described, self.said.at(rows))
        for one in fields(self):
            if isinstance(column := getattr(self, one.name), Column):
                setattr(taken, one.name, column.at(rows))
        epochs = self.epochs_of(rows) if self.is_described else Lists(np.zeros(1, np.int64), {})
        taken.leader_epochs, taken.epoch_offsets = _NUMBERS(), _OFFSETS()
        taken.leader_epochs.add(epochs.elements.get("LeaderEpoch", ()))
        taken.epoch_offsets.add(epochs.elements.get("Offset", ()))
        tagged = np.array(list(self.tagged_fields), np.int64)
        places = np.searchsorted(rows, tagged).tolist()
        for place, row in zip(places, tagged.tolist(), strict=True):
            if place < len(rows) and rows[place] == row:
                taken.tagged_fields[place] = self.tagged_fields[row]
        taken._count = len(rows)
        return taken

    def objects(self, rows: Rows) -> Iterator[dict[str, Any]]:
        """The fields of some rows that no update changes, by their names in RemoteLogSegmentMetadata."""
        columns = zip(
            rows.tolist(),
            self.start_offsets.values[rows].tolist(),
            self.end_offsets.values[rows].tolist(),
            self.max_timestamps.values[rows].tolist(),
            _pairs(self.epochs_of(rows)),
            self.sizes.values[rows].tolist(),
            self.txn_idx_empty.values[rows].tolist(),
            self.forms.values[rows].tolist(),
            strict=True,
        )
        for row, start, end, max_timestamp_ms, epochs, size, empty, form in columns:
            yield {
                "start_offset": start,
                "end_offset": end,
                "max_timestamp_ms": max_timestamp_ms,
                "segment_leader_epochs": epochs,
                "segment_size_in_bytes": size,
                "txn_idx_empty": empty,
                "form": _FORMS[form],
                "tagged_fields": self.tagged_fields.get(row, ()),
            }

    def begun(self, rows: Rows) -> Iterator[dict[str, Any]]:
        """All fields of some rows, by the same names."""
        return (one | said for one, said in zip(self.objects(rows), self.said.by(rows), strict=True))

    def epochs_of(self, rows: Rows) -> Lists:
        """The leader epochs of some rows, with the offsets that they begin with."""
        ends, lengths = self.epoch_counts.ends[rows], self.epoch_counts.values[rows].astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(ends - bounds[1:], lengths) + np.arange(bounds[-1])
        columns = {"LeaderEpoch": self.leader_epochs, "Offset": self.epoch_offsets}
        return Lists(bounds, {name: column.values[places] for name, column in columns.items()})

    def epoch_ranges(self, rows: Rows) -> Lists:
        """The leader epochs with the last offset of each, inclusive, as `LastOffset`."""
        epochs = self.epochs_of(rows)
        lasts = np.append(epochs.elements["Offset"][1:] - 1, 0)
        lasts[epochs.bounds[1:] - 1] = self.end_offsets.values[rows]
        return Lists(epochs.bounds, epochs.elements | {"LastOffset": lasts[: epochs.bounds[-1]]})


def _pairs(epochs: Lists) -> Iterator[tuple[tuple[int, int], ...]]:
    pairs = list(zip(*(column.tolist() for column in epochs.elements.values()), strict=True))
    return (tuple(pairs[first:last]) for first, last in pairwise(epochs.bounds.tolist()))


@dataclass(slots=True)
class SegmentUpdates:
    """The content of updates, if described."""

    is_described: bool
    said: _Said = field(default_factory=_Said)
    _count: int = 0

    def add(self, data: Bytes, group: EventGroup) -> NDArray[np.int32]:
        """Adds a group's events, and returns their rows."""
        first = self._count
        self._count += len(group.rows)
        if self.is_described:
            self.said.add(first, data, group)
        return np.arange(first, self._count, dtype=np.int32)

    def add_one(self, event: RemoteLogSegmentMetadataUpdate) -> NDArray[np.int32]:
        """Adds one event that was not decoded by columns."""
        row = self._count
        self._count += 1
        if self.is_described:
            self.said.add_one(row, event)
        return np.array([row], np.int32)

    def at(self, rows: Rows) -> SegmentUpdates:
        """Some rows, which rise."""
        return SegmentUpdates(self.is_described, self.said.at(rows), len(rows))


@dataclass(slots=True)
class EventContents:
    """The content of all events, as far as it is kept."""

    starts: StartedCopies
    updates: SegmentUpdates

    @classmethod
    def empty(cls, *, is_described: bool) -> EventContents:
        """Empty contents, to take all of what events say, or only what states depend on."""
        return cls(StartedCopies(is_described), SegmentUpdates(is_described))

    def only(self, are_starts: Flags, rows: Rows) -> tuple[EventContents, NDArray[np.int32]]:
        """The content of some events alone, by whether they are starts and their rows there; and their rows there
        now."""
        starts, updates = np.sort(rows[are_starts]), np.sort(rows[~are_starts])
        numbers = np.empty(len(rows), np.int32)
        numbers[are_starts] = np.searchsorted(starts, rows[are_starts])
        numbers[~are_starts] = np.searchsorted(updates, rows[~are_starts])
        return EventContents(self.starts.at(starts), self.updates.at(updates)), numbers

    def event_timestamps(self, are_starts: Flags, rows: Rows) -> Ints:
        """The timestamps of some events, by whether they are starts and their rows there, in milliseconds."""
        columns = self.starts.said.event_timestamps, self.updates.said.event_timestamps
        return _of_either(*columns, are_starts, rows)

    def authors(self, are_starts: Flags, rows: Rows) -> Ints:
        """Who wrote some events, by the same."""
        return _of_either(self.starts.said.authors, self.updates.said.authors, are_starts, rows)


def _of_either(starts: Column, updates: Column, are_starts: Flags, rows: Rows) -> Ints:
    values = np.empty(len(rows), np.int64)
    values[are_starts] = starts.values[rows[are_starts]]
    values[~are_starts] = updates.values[rows[~are_starts]]
    return values

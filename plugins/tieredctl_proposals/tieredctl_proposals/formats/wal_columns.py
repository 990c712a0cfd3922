"""Events of `__remote_wal_log_metadata` as columns: the bulk counterpart of `wal_records.py`, from the same schemas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieredctl.formats.columns import NULL, ColumnReader, Columns, Lists, kept
from tieredctl.formats.event_frame import FRAME_BYTES, FRAME_VERSION, MESSAGE_VERSION
from tieredctl.formats.metadata_columns import EventGroup, named_partitions, rising
from tieredctl.formats.windows import Bytes, Flags, Ints, rows_at
from tieredctl.model.events import RecordForm, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl_proposals.formats.wal_schemas import (
    WAL_COMBINED,
    WAL_COMBINED_UPDATE,
    WAL_SCHEMAS,
    WAL_SEGMENT,
    WAL_SEGMENT_UPDATE,
)
from tieredctl_proposals.model.wal_events import NO_POSITION

ENTRIES = "RemoteLogSegmentMetadataEntries"
_READERS = {api_key: ColumnReader(schema) for api_key, schema in WAL_SCHEMAS.items()}
_STATE, _FINISHED = "RemoteLogSegmentState", RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_NAME = "RemoteLogSegmentId.TopicIdPartition.Name"


@dataclass(frozen=True, slots=True)
class CombinedGroup:
    """Events of one kind about combined objects. `rows` are the numbers of their values; `columns` has a row for each.

    `entries` are the segments of each; `partitions` has each user partition once, and `partition_index` which of them
    an entry is about.
    """

    api_key: int
    rows: Ints
    columns: Columns
    entries: Lists
    partitions: list[TopicIdPartition]
    partition_index: Ints


@dataclass(frozen=True, slots=True)
class WalColumns:
    """The events of many values. `left` are the values that `wal_records.decode_wal_event` has to read: those with
    unknown tagged fields or longer lists than others, and undecodable ones."""

    segments: list[EventGroup]
    combined: list[CombinedGroup]
    left: Ints


def decode_wal_columns(data: Bytes, starts: Ints, ends: Ints) -> WalColumns:
    """The events in values from `starts` to `ends`; a value is there where starts is not -1."""
    decoded = WalColumns([], [], np.zeros(0, np.int64))
    left = np.ones(len(starts), np.bool_)
    heads = rows_at(data, starts, FRAME_BYTES)
    framed = (starts != NULL) & (ends - starts > FRAME_BYTES)
    framed &= (heads[:, 0] == FRAME_VERSION) & (heads[:, 2] == MESSAGE_VERSION)
    for api_key, reader in _READERS.items():
        rows = np.flatnonzero(framed & (heads[:, 1] == api_key))
        if not len(rows):
            continue
        columns, read = reader.read(data, starts[rows] + FRAME_BYTES, ends[rows])
        read &= (columns[_STATE] >= 0) & (columns[_STATE] <= max(RemoteLogSegmentState))
        read &= _sensible_entries(columns) if ENTRIES in columns else _sensible_segment(columns)
        columns = {path: kept(column, read) for path, column in columns.items()}
        group = _group(data, api_key, rows[read], columns)
        if isinstance(group, EventGroup):
            decoded.segments.append(group)
        elif group is not None:
            decoded.combined.append(group)
        if group is not None:
            left[group.rows] = False
    return WalColumns(decoded.segments, decoded.combined, np.flatnonzero(left))


def _group(data: Bytes, api_key: int, rows: Ints, columns: Columns) -> EventGroup | CombinedGroup | None:
    """The rows of one kind of event; None where there are no rows, or where a topic's name is not text."""
    if not len(rows):
        return None
    if api_key in (WAL_SEGMENT, WAL_SEGMENT_UPDATE):
        named = named_partitions(data, columns[_NAME])
        return named and EventGroup(api_key, RecordForm.KAFKA, rows, columns, *named)
    assert api_key in (WAL_COMBINED, WAL_COMBINED_UPDATE)
    entries = columns.pop(ENTRIES)
    named = named_partitions(data, entries.elements[_NAME])
    return named and CombinedGroup(api_key, rows, columns, entries, *named)


def _sensible_segment(columns: Columns) -> Flags:
    """Flags the rows that make a value of `model.wal_events`."""
    sensible, is_placed = _sensible_range(columns)
    sensible &= is_placed | (columns[_STATE] != _FINISHED)
    if "StartOffset" in columns:
        sensible &= (columns["StartOffset"] >= 0) & (columns["EndOffset"] >= columns["StartOffset"])
        sensible &= _sensible_epochs(columns["SegmentLeaderEpochs"], columns["StartOffset"], columns["EndOffset"])
        size = columns["EndFilePosition"] - columns["StartFilePosition"] + 1
        sensible &= (columns["SegmentSizeInBytes"] > 0) & (~is_placed | (size == columns["SegmentSizeInBytes"]))
    return sensible


def _sensible_epochs(epochs: Lists, start_offsets: Ints, end_offsets: Ints) -> Flags:
    """Flags the rows that have a leader epoch for each of their offsets."""
    sensible = rising(epochs, "LeaderEpoch") & rising(epochs, "Offset")
    rows = np.flatnonzero(sensible)
    starts = epochs.elements["Offset"]
    sensible[rows] &= starts[epochs.bounds[rows]] == start_offsets[rows]
    sensible[rows] &= starts[epochs.bounds[rows + 1] - 1] <= end_offsets[rows]
    return sensible


def _sensible_entries(columns: Columns) -> Flags:
    entries: Lists = columns[ENTRIES]
    counts = np.diff(entries.bounds)
    sensible: Flags = counts > 0
    if not entries.elements:
        return sensible
    each, is_placed = _sensible_range(entries.elements)
    owners = np.repeat(np.arange(len(counts)), counts)
    placed = np.bincount(owners[is_placed], minlength=len(counts))
    sensible[owners[~each]] = False
    starts, ends = entries.elements["StartFilePosition"], entries.elements["EndFilePosition"]
    out_of_order = np.flatnonzero((starts[1:] <= ends[:-1]) & (owners[1:] == owners[:-1]))
    sensible[owners[out_of_order][placed[owners[out_of_order]] > 0]] = False
    sensible &= (placed == counts) | (columns[_STATE] != _FINISHED)
    return sensible


def _sensible_range(columns: Columns) -> tuple[Flags, Flags]:
    """Flags the ranges that are possible, and those that are known."""
    starts, ends = columns["StartFilePosition"], columns["EndFilePosition"]
    is_placed: Flags = (starts != NO_POSITION) | (ends != NO_POSITION)
    return ~is_placed | ((starts >= 0) & (starts <= ends)), is_placed

"""Metadata events as columns: the bulk counterpart of `metadata_records.py`, from the same schemas."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tieredctl.formats.byte_spans import distinct_spans
from tieredctl.formats.columns import NULL, ColumnReader, Columns, Lists, Spans, kept
from tieredctl.formats.event_frame import FRAME_BYTES, FRAME_VERSION, MESSAGE_VERSION
from tieredctl.formats.metadata_schemas import (
    KAFKA_SCHEMAS,
    KAFKA_SCHEMAS_BEFORE_3_6,
    PARTITION_DELETE,
    SEGMENT_METADATA,
    SEGMENT_METADATA_UPDATE,
)
from tieredctl.formats.windows import Bytes, Flags, Ints, rows_at
from tieredctl.model.events import RecordForm, RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import TopicIdPartition, uuid_text

_TOPIC_KINDS = (SEGMENT_METADATA, SEGMENT_METADATA_UPDATE, PARTITION_DELETE)
_READERS = {
    form: {api_key: ColumnReader(schemas[api_key]) for api_key in _TOPIC_KINDS}
    for form, schemas in (
        (RecordForm.KAFKA, KAFKA_SCHEMAS),
        (RecordForm.KAFKA_BEFORE_3_6, KAFKA_SCHEMAS_BEFORE_3_6),
    )
}
_HIGHEST_STATE = {
    SEGMENT_METADATA: ("RemoteLogSegmentState", max(RemoteLogSegmentState)),
    SEGMENT_METADATA_UPDATE: ("RemoteLogSegmentState", max(RemoteLogSegmentState)),
    PARTITION_DELETE: ("RemotePartitionDeleteState", max(RemotePartitionDeleteState)),
}


_TOPIC_PATH = {
    SEGMENT_METADATA: "RemoteLogSegmentId.TopicIdPartition",
    SEGMENT_METADATA_UPDATE: "RemoteLogSegmentId.TopicIdPartition",
    PARTITION_DELETE: "TopicIdPartition",
}
_BEHIND_NAME = struct.Struct(">16si")


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events of one kind and form. `rows` are the numbers of their values; `columns` has a row for each.

    `partitions` holds each user partition once, and `partition_index` which of them an event is about.
    """

    api_key: int
    form: RecordForm
    rows: Ints
    columns: Columns
    partitions: list[TopicIdPartition]
    partition_index: Ints

    def where(self, keep: Flags) -> EventGroup:
        """Some of the events; `partitions` stays as it is."""
        columns = {path: kept(column, keep) for path, column in self.columns.items()}
        return EventGroup(
            self.api_key, self.form, self.rows[keep], columns, self.partitions, self.partition_index[keep]
        )


def decode_columns(data: Bytes, starts: Ints, ends: Ints) -> tuple[list[EventGroup], Ints]:
    """The events of many values, and which values are left to `metadata_records.decode_event`: those in the KIP's
    form, with unknown tagged fields, with unordered epochs, or undecodable. A value is there where starts is not -1.
    """
    groups = []
    left = np.ones(len(starts), np.bool_)
    heads = rows_at(data, starts, FRAME_BYTES)
    framed = (starts != NULL) & (ends - starts > FRAME_BYTES)
    framed &= (heads[:, 0] == FRAME_VERSION) & (heads[:, 2] == MESSAGE_VERSION)
    for api_key in _TOPIC_KINDS:
        rows = np.flatnonzero(framed & (heads[:, 1] == api_key))
        for form, readers in _READERS.items():
            columns, read = readers[api_key].read(data, starts[rows] + FRAME_BYTES, ends[rows])
            read &= _sensible(api_key, columns)
            group = _group(data, api_key, form, rows, columns, read)
            if group is not None:
                groups.append(group)
                left[group.rows] = False
            rows = rows[left[rows]]
            if not len(rows):
                break
    return groups, np.flatnonzero(left)


def _group(data: Bytes, api_key: int, form: RecordForm, rows: Ints, columns: Columns, read: Flags) -> EventGroup | None:
    """The rows that were read; None where there are none, or where a topic's name is not text."""
    if not read.all():
        rows = rows[read]
        columns = {path: kept(column, read) for path, column in columns.items()}
    if not len(rows):
        return None
    named = named_partitions(data, columns[_TOPIC_PATH[api_key] + ".Name"])
    return named and EventGroup(api_key, form, rows, columns, *named)


def named_partitions(data: Bytes, names: Spans) -> tuple[list[TopicIdPartition], Ints] | None:
    """Each user partition once, and which of them each of the names is of: topic id and partition follow a name. None
    where a name is not text."""
    keys, numbers = distinct_spans(data, names.starts, names.ends + _BEHIND_NAME.size)
    try:
        return [_topic_id_partition(key) for key in keys], numbers
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=1 << 16)
def _topic_id_partition(key: bytes) -> TopicIdPartition:
    topic_id, partition = _BEHIND_NAME.unpack_from(key, len(key) - _BEHIND_NAME.size)
    return TopicIdPartition(uuid_text(topic_id), key[: -_BEHIND_NAME.size].decode("utf-8"), partition)


def _sensible(api_key: int, columns: Columns) -> Flags:
    """Flags the rows that the constructors of Kafka's classes would accept."""
    name, highest = _HIGHEST_STATE[api_key]
    sensible: Flags = (columns[name] >= 0) & (columns[name] <= highest)
    if api_key == SEGMENT_METADATA:
        topic = columns[_TOPIC_PATH[api_key] + ".Name"]
        sensible &= topic.ends > topic.starts  # what looks like an empty name is the KIP's form
        sensible &= (columns["StartOffset"] >= 0) & (columns["EndOffset"] >= columns["StartOffset"])
        sensible &= rising(columns["SegmentLeaderEpochs"], "LeaderEpoch")
    return sensible


def rising(lists: Lists, field: str) -> Flags:
    """Flags the rows that have elements, and a field of them in order."""
    are_rising: Flags = np.diff(lists.bounds) > 0
    values = lists.elements[field].astype(np.int64)
    falls = np.flatnonzero(values[1:] <= values[:-1]) + 1
    owners = np.searchsorted(lists.bounds, falls, side="right") - 1
    are_rising[owners[lists.bounds[owners] != falls]] = False
    return are_rising

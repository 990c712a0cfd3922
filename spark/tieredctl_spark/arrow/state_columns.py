"""A bucket of user partitions, replayed: their events as Arrow columns in, the states of their segments out.

Where all events of a partition are in one bucket, the buckets together say what one replay of everything does, but for
an id that partitions of several buckets claim: `states_of` finds those, in a bucket of segment ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.formats.uuid_columns import UuidColumns, uuids_in_text
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RecordForm, RemotePartitionDeleteState
from tieredctl.model.ids import UUID_BYTES, UUID_CHARACTERS, TopicIdPartition
from tieredctl.ops.orphans.segment_states import CopiedOffsets, SegmentStates, states_in_partitions
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents

PARTITION_FIELDS = {"topic": pa.string(), "topicId": pa.string(), "partition": pa.int32()}
_PLACE_FIELDS = {"metadataPartition": pa.int32(), "metadataOffset": pa.int64()}
EVENT_SCHEMA = pa.schema(
    {
        **_PLACE_FIELDS,
        "apiKey": pa.int8(),
        **PARTITION_FIELDS,
        "segmentId": pa.string(),
        "state": pa.int8(),
        "startOffset": pa.int64(),
        "endOffset": pa.int64(),
        "eventTimestampMs": pa.int64(),
        "brokerId": pa.int32(),
    }
)
"""An event a row: `apiKey` tells its kind, as in the record; null is what that kind does not say. Offsets are
inclusive."""
COPIED_FIELDS = {"copiedFrom": pa.int64(), "copiedTo": pa.int64(), "copiedMs": pa.int64()}
"""The fields of a partition, as in `CopiedOffsets`."""
STATE_SCHEMA = pa.schema(
    {
        **PARTITION_FIELDS,
        "segmentId": pa.string(),
        "state": pa.int8(),
        "startOffset": pa.int64(),
        **_PLACE_FIELDS,
        "superseded": pa.bool_(),
        "removal": pa.int8(),
        **COPIED_FIELDS,
    }
)
"""A row for each segment of each partition, as in `SegmentStates`; `removal` is the state of its partition's removal,
null where there is none."""

_NO_BYTES = np.zeros(0, np.uint8)
_NO_REMOVAL = -1


def replayed_states(events: pa.Table) -> SegmentStates:
    """The segments of some partitions, from all their events by EVENT_SCHEMA, in any order."""
    found = SegmentEvents()
    rows = pa.table(events.columns, schema=EVENT_SCHEMA).combine_chunks()
    partitions, partition_of = numbered_partitions(rows)
    places = [numbers_in(flat(rows, name)) for name in ("metadataPartition", "metadataOffset")]
    order = np.lexsort((places[1], places[0]))
    edges = np.append(np.flatnonzero(np.diff(places[0][order], prepend=-1)), len(order))
    for first, end in pairwise(edges.tolist()):
        of_one = order[first:end]
        groups = _groups(rows.take(number_array(of_one)), partitions, partition_of[of_one])
        times = np.zeros(len(of_one), np.int64)
        number = int(places[0][of_one[0]])
        found.take(EventChunk(number, places[1][of_one], times, _NO_BYTES, groups, ()))
    return states_in_partitions(found)


def states_of(segments: pa.Table, known: Mapping[TopicIdPartition, int], last_timestamp_ms: int) -> SegmentStates:
    """Segments by STATE_SCHEMA, all of an id together, for a judge; `known` numbers their partitions, and perhaps
    others. `last_timestamp_ms` is that of the last record that was read of all metadata. What partitions copied is not
    told: a judge that has some ids alone does not see that."""
    rows = pa.table(segments.columns, schema=STATE_SCHEMA).combine_chunks()
    partitions, partition_of = numbered_partitions(rows)
    numbers = np.array([known[one] for one in partitions], np.int64)
    owners = numbers[partition_of] if len(partition_of) else np.zeros(0, np.int64)
    ids = uuids_of(flat(rows, "segmentId"))
    names = ("state", "metadataPartition", "metadataOffset", "startOffset")
    states, metadata_partitions, metadata_offsets, start_offsets = (numbers_in(flat(rows, name)) for name in names)
    superseded = flat(rows, "superseded").cast(pa.int8())
    removals = numbers_in(pc.fill_null(flat(rows, "removal"), pa.scalar(_NO_REMOVAL, pa.int8())))
    removed = np.flatnonzero(removals != _NO_REMOVAL)
    claims = SegmentStates(
        ids,
        states,
        owners,
        start_offsets,
        metadata_partitions.astype(np.int64),
        metadata_offsets,
        numbers_in(superseded).astype(np.bool_),
        list(known),
        dict(zip(owners[removed].tolist(), map(RemotePartitionDeleteState, removals[removed].tolist()), strict=True)),
        CopiedOffsets.none(len(known)),
        last_timestamp_ms,
    )
    return claims.one_of_each()


def numbered_partitions(rows: pa.Table) -> tuple[list[TopicIdPartition], Ints]:
    """The distinct partitions that rows name in `topic`, `topicId` and `partition`, and the number of each row's."""
    names = list(PARTITION_FIELDS)
    if not len(rows):
        return [], np.zeros(0, np.int64)
    coded = [pc.dictionary_encode(flat(rows, name)) for name in names]
    number = np.zeros(len(rows), np.int64)
    for column in coded:
        number = number * len(column.dictionary) + numbers_in(column.indices)
    distinct, first_rows, number_of = np.unique(number, return_index=True, return_inverse=True)
    few = rows.select(names).take(number_array(first_rows)).to_pylist()
    assert len(few) == len(distinct)
    return [TopicIdPartition(row["topicId"], row["topic"], row["partition"]) for row in few], number_of


def uuids_of(texts: pa.StringArray) -> UuidColumns:
    """Ids in text, none null. Raises ValueError for what is not an id."""
    _, bounds, data = texts.buffers()
    first = np.frombuffer(bounds, np.int32)[texts.offset] if len(texts) else 0
    length = len(texts) * UUID_CHARACTERS
    characters = np.frombuffer(data or b"", np.uint8)[first : first + length].reshape(-1, UUID_CHARACTERS)
    ids, valid = uuids_in_text(characters)
    if not valid.all():
        raise ValueError("a segment id is not one")
    return ids


def _groups(rows: pa.Table, partitions: list[TopicIdPartition], partition_of: Ints) -> list[EventGroup]:
    kinds = numbers_in(flat(rows, "apiKey"))
    groups = []
    for api_key in (SEGMENT_METADATA, SEGMENT_METADATA_UPDATE, PARTITION_DELETE):
        of_kind = np.flatnonzero(kinds == api_key)
        if len(of_kind):
            columns = _columns(rows.take(number_array(of_kind)).combine_chunks(), api_key)
            groups.append(EventGroup(api_key, RecordForm.KAFKA, of_kind, columns, partitions, partition_of[of_kind]))
    return groups


def _columns(rows: pa.Table, api_key: int) -> dict[str, Any]:
    states = numbers_in(flat(rows, "state"))
    if api_key == PARTITION_DELETE:
        return {"RemotePartitionDeleteState": states}
    ids = uuids_of(flat(rows, "segmentId")).octets().view(np.dtype((np.void, UUID_BYTES)))[:, 0]
    columns = {"RemoteLogSegmentId.Id": ids, "RemoteLogSegmentState": states}
    if api_key == SEGMENT_METADATA:
        columns["StartOffset"] = numbers_in(flat(rows, "startOffset"))
        columns["EndOffset"] = numbers_in(flat(rows, "endOffset"))
        columns["EventTimestampMs"] = numbers_in(flat(rows, "eventTimestampMs"))
        columns["BrokerId"] = numbers_in(flat(rows, "brokerId"))
    return columns


def flat(rows: pa.Table, name: str) -> pa.Array:
    """A column of a table without chunks."""
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)

"""Records of `__remote_log_metadata` made narrow: what states, verdicts and counts need of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.ops.metadata.stretches import MetadataSource, demand_held
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA
from tieredctl_spark.metadata_shares import FINDING, METADATA_SCHEMA, planned_shares, share_tables
from tieredctl_spark.packed import Keep, Packed, packed_parts
from tieredctl_spark.worker_failures import one_sentence

_API_KEYS: dict[str, int | None] = {
    "RemoteLogSegmentMetadata": SEGMENT_METADATA,
    "RemoteLogSegmentMetadataUpdate": SEGMENT_METADATA_UPDATE,
    "RemotePartitionDeleteMetadata": PARTITION_DELETE,
    "RemoteLogSegmentMetadataSnapshot": None,
}
_STATES: dict[str, int | None] = {
    state.name: int(state) for kind in (RemoteLogSegmentState, RemotePartitionDeleteState) for state in kind
}
_OTHERS = ("timestampMs", FINDING)
_NUMBERED: dict[str, tuple[str, Mapping[str, int | None]]] = {
    "apiKey": ("type", _API_KEYS),
    "state": ("state", _STATES),
}

ROW_SCHEMA = pa.schema([*EVENT_SCHEMA, *(METADATA_SCHEMA.field(name) for name in _OTHERS)])
"""A row for each record and finding. `apiKey` is null where a record is not an event by EVENT_SCHEMA."""


COPY_SCHEMA = pa.schema(
    [ROW_SCHEMA.field(name) for name in ("metadataOffset", "topicId", "partition", "segmentId", "brokerId")]
)


def metadata_rows(session: SparkSession, place: MetadataPlace) -> Packed:
    """All records by ROW_SCHEMA, read when this is computed."""
    shares = planned_shares(place)

    def read(number: int) -> Iterator[pa.Table]:
        with one_sentence():
            yield from map(narrow_rows, share_tables(place, shares[number]))

    return packed_parts(session, len(shares), read, ROW_SCHEMA, len(shares))


def kept_metadata(session: SparkSession, place: MetadataPlace, opened: MetadataSource, keep: Keep) -> Packed:
    """`metadata_rows` of a place that was opened before, all of its records of then among them. Raises TieredctlError
    `unreadable` where some are gone by now: what was read may lack them."""
    rows = metadata_rows(session, place).kept(keep, "metadata")
    with closing(place.open_source()) as now:
        for number in opened.metadata_partitions():
            demand_held(now, number, opened.offset_range(number), was_read=False)
    return rows


def narrow_rows(records: pa.Table) -> pa.Table:
    """Rows by METADATA_SCHEMA, by ROW_SCHEMA. Raises ValueError for an event of an unknown kind: one that is passed
    over would make orphans of what it names."""
    columns = [
        _numbers_of(records.column(_NUMBERED[name][0]), _NUMBERED[name][1])
        if name in _NUMBERED
        else records.column(name)
        for name in ROW_SCHEMA.names
    ]
    return pa.table(columns, schema=ROW_SCHEMA)


def events_in(rows: Packed) -> Packed:
    """The events among `metadata_rows`, by EVENT_SCHEMA."""
    return rows.through(_events, EVENT_SCHEMA)


def copies_in(rows: Packed) -> Packed:
    """Who copied which segment, by COPY_SCHEMA: a row for each event that says so."""
    return rows.through(_copies, COPY_SCHEMA)


def _copies(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.equal(rows.column("apiKey"), SEGMENT_METADATA)).select(COPY_SCHEMA.names)


def _events(rows: pa.Table) -> pa.Table:
    return rows.filter(rows.column("apiKey").is_valid()).select(EVENT_SCHEMA.names)


def _numbers_of(texts: pa.ChunkedArray, numbers: Mapping[str, int | None]) -> pa.ChunkedArray:
    known = pc.index_in(texts, value_set=pa.array(numbers, pa.string()))
    unknown = texts.filter(pc.and_(texts.is_valid(), known.is_null()))
    if len(unknown):
        raise ValueError(f"There is an event of the unknown kind {unknown[0]}")
    return pa.array(numbers.values(), pa.int8()).take(known)

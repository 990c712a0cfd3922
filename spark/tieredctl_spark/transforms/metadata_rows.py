"""Records of `__remote_log_metadata` made narrow: what states, verdicts and counts need of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA, SEGMENT_METADATA_UPDATE
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl_spark.metadata_shares import FINDING, METADATA_SCHEMA

_API_KEYS: dict[str, int | None] = {
    "RemoteLogSegmentMetadata": SEGMENT_METADATA,
    "RemoteLogSegmentMetadataUpdate": SEGMENT_METADATA_UPDATE,
    "RemotePartitionDeleteMetadata": PARTITION_DELETE,
    "RemoteLogSegmentMetadataSnapshot": None,
}
_PLACE = ("metadataPartition", "metadataOffset", "timestampMs")
_UNCHANGED = ("topic", "topicId", "partition", "segmentId", "startOffset", "endOffset", "brokerId")

RECORD_SCHEMA = pa.schema([METADATA_SCHEMA.field(name) for name in (*_PLACE, "type", "state", *_UNCHANGED, FINDING)])
"""What is to be asked of the source `remote_log_metadata`."""


def metadata_rows(records: DataFrame) -> DataFrame:
    """A row for each record and finding by RECORD_SCHEMA: the columns of EVENT_SCHEMA, and
    `timestampMs`, `brokerId` and `finding`. `apiKey` is null where a record is not an event by EVENT_SCHEMA."""
    states = _numbers(RemoteLogSegmentState) | _numbers(RemotePartitionDeleteState)
    return records.select(
        *_PLACE,
        _number_of(fn.col("type"), _API_KEYS).alias("apiKey"),
        _number_of(fn.col("state"), states).alias("state"),
        *_UNCHANGED,
        FINDING,
    )


def events_in(rows: DataFrame) -> DataFrame:
    """The events among `metadata_rows`."""
    return rows.where(fn.col("apiKey").isNotNull())


def _numbers(states: type[IntEnum]) -> dict[str, int | None]:
    return {state.name: int(state) for state in states}


def _number_of(text: Column, numbers: Mapping[str, int | None]) -> Column:
    """Fails on any other text: an event that is passed over would make orphans of what it names."""
    found = fn.when(text.isNull(), fn.lit(None))
    for name, number in numbers.items():
        found = found.when(text == name, fn.lit(number))
    return found.otherwise(fn.raise_error(fn.concat(fn.lit("There is an event of the unknown kind "), text))).cast(
        "byte"
    )

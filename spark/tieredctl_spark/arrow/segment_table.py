"""Replayed segments as an Arrow table: the columns of `metadata segments`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import bytes_or_null_array, flag_array, number_array, text_array
from tieredctl.formats.columns import Lists
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RecordForm, RemoteLogSegmentState
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl_spark.arrow.instants import INSTANT, instants

SEGMENT_TABLE_SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "segmentId": pa.string(),
        "startOffset": pa.int64(),
        "endOffset": pa.int64(),
        "maxTimestamp": INSTANT,
        "segmentLeaderEpochs": pa.list_(pa.struct({"leaderEpoch": pa.int32(), "offset": pa.int64()})),
        "segmentSizeInBytes": pa.int32(),
        "txnIdxEmpty": pa.bool_(),
        "brokerId": pa.int32(),
        "leaderEpoch": pa.int32(),
        "eventTimestamp": INSTANT,
        "state": pa.string(),
        "customMetadata": pa.binary(),
        "metadataPartition": pa.int32(),
        "metadataOffset": pa.int64(),
    }
)
"""A row for each segment that a broker knows. Offsets are inclusive, but that of a leader epoch is its first one.
`brokerId`, `eventTimestamp`, `customMetadata`, `metadataPartition` and `metadataOffset` are those of its last event
that was taken. In the form of KIP-405, `leaderEpoch` stands for `brokerId`. A size that metadata does not tell is
null."""
_AT_ONCE = 1 << 16
_STATES = text_array([state.name for state in RemoteLogSegmentState])
_KIP_405 = tuple(RecordForm).index(RecordForm.KIP_405)


def segment_tables(metadata: ReplayedMetadata, rows: Ints) -> list[pa.Table]:
    """Some rows of the replay, by SEGMENT_TABLE_SCHEMA, in their order."""
    return [_table(metadata, rows[first : first + _AT_ONCE]) for first in range(0, len(rows), _AT_ONCE)]


def _table(metadata: ReplayedMetadata, rows: Ints) -> pa.Table:
    segments, partitions = metadata.rows.at(rows), metadata.partitions
    begun, starts, owners = metadata.events.contents.starts, segments.starts, number_array(segments.partitions)
    authors = number_array(metadata.authors(rows).astype(np.int32))
    is_kip_405 = flag_array(begun.forms.values[starts] == _KIP_405)
    sizes, none = number_array(begun.sizes.values[starts]), pa.scalar(None, pa.int32())
    columns = [
        text_array([one.topic for one in partitions]).take(owners),
        text_array([one.topic_id for one in partitions]).take(owners),
        number_array(np.array([one.partition for one in partitions], np.int32)).take(owners),
        segments.segment_ids.text_array(),
        number_array(begun.start_offsets.values[starts]),
        number_array(begun.end_offsets.values[starts]),
        instants(number_array(begun.max_timestamps.values[starts])),
        _epochs(begun.epochs_of(starts)),
        pc.if_else(pc.less(sizes, 0), none, sizes),
        flag_array(begun.txn_idx_empty.values[starts]),
        pc.if_else(is_kip_405, none, authors),
        pc.if_else(is_kip_405, authors, none),
        instants(number_array(metadata.event_timestamps(rows))),
        _STATES.take(number_array(segments.states)),
        bytes_or_null_array(metadata.custom_metadata(rows)),
        number_array(segments.metadata_partitions),
        number_array(segments.metadata_offsets),
    ]
    return pa.table(columns, schema=SEGMENT_TABLE_SCHEMA)


def _epochs(epochs: Lists) -> pa.ListArray:
    columns = [number_array(epochs.elements[name]) for name in ("LeaderEpoch", "Offset")]
    pairs = pa.StructArray.from_arrays(columns, ["leaderEpoch", "offset"])
    return pa.ListArray.from_arrays(number_array(epochs.bounds.astype(np.int32)), pairs)

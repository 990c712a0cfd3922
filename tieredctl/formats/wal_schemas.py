"""The records of `__remote_wal_log_metadata`, described (KIP-1176).

The proposal has classes and no wire form. This one is tieredctl's choice: Kafka's flexible encoding in the frame of
`__remote_log_metadata`, with apiKeys that Kafka's own records will not reach. Field names and, where the proposal lists
them, their order are its own.
"""

from __future__ import annotations

from tieredctl.formats.metadata_schemas import EPOCHS, REMOTE_LOG_SEGMENT_ID
from tieredctl.formats.schema import Array, Field, Length, Primitive, Struct

_INT8, _INT32, _INT64, _UUID = Primitive.INT8, Primitive.INT32, Primitive.INT64, Primitive.UUID

WAL_SEGMENT, WAL_SEGMENT_UPDATE, WAL_COMBINED, WAL_COMBINED_UPDATE = range(100, 104)
"""The apiKeys."""

_FILE_RANGE = (Field("StartFilePosition", _INT64), Field("EndFilePosition", _INT64))
_OBJECT_FIELDS = (Field("CombinedSegmentId", _UUID), Field("CombinedCoordinatorPartition", _INT32), *_FILE_RANGE)
_ENTRY = Struct(
    "RemoteLogSegmentMetadataEntry",
    (Field("RemoteLogSegmentId", REMOTE_LOG_SEGMENT_ID), *_FILE_RANGE),
    flexible=True,
)
_COMBINED_FIELDS = (
    Field("CombinedSegmentId", _UUID),
    Field("RemoteLogSegmentMetadataEntries", Array(_ENTRY)),
    Field("CustomMetadata", Length.NULLABLE_BYTES),
    Field("RemoteLogSegmentState", _INT8),
    Field("BrokerId", _INT32),
    Field("EventTimestampMs", _INT64),
)

WAL_SCHEMAS = {
    WAL_SEGMENT: Struct(
        "RemoteWalLogSegmentMetadataRecord",
        (
            Field("RemoteLogSegmentId", REMOTE_LOG_SEGMENT_ID),
            Field("StartOffset", _INT64),
            Field("EndOffset", _INT64),
            Field("BrokerId", _INT32),
            Field("LeaderEpoch", _INT32),
            Field("MaxTimestampMs", _INT64),
            Field("EventTimestampMs", _INT64),
            Field("SegmentLeaderEpochs", EPOCHS),
            Field("SegmentSizeInBytes", _INT32),
            Field("CustomMetadata", Length.NULLABLE_BYTES),
            Field("RemoteLogSegmentState", _INT8),
            *_OBJECT_FIELDS,
        ),
        flexible=True,
    ),
    WAL_SEGMENT_UPDATE: Struct(
        "RemoteWalLogSegmentMetadataUpdateRecord",
        (
            Field("RemoteLogSegmentId", REMOTE_LOG_SEGMENT_ID),
            Field("EventTimestampMs", _INT64),
            Field("CustomMetadata", Length.NULLABLE_BYTES),
            Field("RemoteLogSegmentState", _INT8),
            Field("BrokerId", _INT32),
            Field("LeaderEpoch", _INT32),
            *_OBJECT_FIELDS,
        ),
        flexible=True,
    ),
    WAL_COMBINED: Struct("RemoteWalCombinedLogSegmentMetadataRecord", _COMBINED_FIELDS, flexible=True),
    WAL_COMBINED_UPDATE: Struct("RemoteWalCombinedLogSegmentMetadataUpdateRecord", _COMBINED_FIELDS, flexible=True),
}

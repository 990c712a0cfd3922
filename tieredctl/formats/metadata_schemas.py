"""The records of `__remote_log_metadata`, described.

Kafka's form follows storage/src/main/resources/message/*.json of Apache Kafka 4.x; the KIP's form follows KIP-405,
"Message Format". Field names are those of the sources.
"""

from __future__ import annotations

from tieredctl.formats.schema import Array, Field, Length, Primitive, Struct

_INT8, _INT32, _INT64, _UUID = Primitive.INT8, Primitive.INT32, Primitive.INT64, Primitive.UUID

SEGMENT_METADATA, SEGMENT_METADATA_UPDATE, PARTITION_DELETE, SEGMENT_METADATA_SNAPSHOT = range(4)
"""The apiKeys of Kafka's form; the first three are also the types of the KIP's form."""

TOPIC_ID_PARTITION = Struct(
    "TopicIdPartition",
    (Field("Name", Length.STRING), Field("Id", _UUID), Field("Partition", _INT32)),
    flexible=True,
)
REMOTE_LOG_SEGMENT_ID = Struct(
    "RemoteLogSegmentId",
    (Field("TopicIdPartition", TOPIC_ID_PARTITION), Field("Id", _UUID)),
    flexible=True,
)

_EPOCH_FIELDS = (Field("LeaderEpoch", _INT32), Field("Offset", _INT64))
_SEGMENT_FIELDS = (
    Field("StartOffset", _INT64),
    Field("EndOffset", _INT64),
    Field("BrokerId", _INT32),
    Field("MaxTimestampMs", _INT64),
    Field("EventTimestampMs", _INT64),
    Field("SegmentLeaderEpochs", Array(Struct("SegmentLeaderEpochs", _EPOCH_FIELDS, flexible=True))),
    Field("SegmentSizeInBytes", _INT32),
    Field("CustomMetadata", Length.NULLABLE_BYTES),
    Field("RemoteLogSegmentState", _INT8),
    Field("TxnIndexEmpty", Primitive.BOOL, tag=0, default=False),
)

KAFKA_SCHEMAS = {
    SEGMENT_METADATA: Struct(
        "RemoteLogSegmentMetadataRecord",
        (Field("RemoteLogSegmentId", REMOTE_LOG_SEGMENT_ID), *_SEGMENT_FIELDS),
        flexible=True,
    ),
    SEGMENT_METADATA_UPDATE: Struct(
        "RemoteLogSegmentMetadataUpdateRecord",
        (
            Field("RemoteLogSegmentId", REMOTE_LOG_SEGMENT_ID),
            Field("BrokerId", _INT32),
            Field("EventTimestampMs", _INT64),
            Field("CustomMetadata", Length.NULLABLE_BYTES),
            Field("RemoteLogSegmentState", _INT8),
        ),
        flexible=True,
    ),
    PARTITION_DELETE: Struct(
        "RemotePartitionDeleteMetadataRecord",
        (
            Field("TopicIdPartition", TOPIC_ID_PARTITION),
            Field("BrokerId", _INT32),
            Field("EventTimestampMs", _INT64),
            Field("RemotePartitionDeleteState", _INT8),
        ),
        flexible=True,
    ),
    SEGMENT_METADATA_SNAPSHOT: Struct(
        "RemoteLogSegmentMetadataSnapshotRecord",
        (Field("SegmentId", _UUID), *_SEGMENT_FIELDS),
        flexible=True,
    ),
}

KAFKA_SCHEMAS_BEFORE_3_6 = {
    api_key: schema.without("CustomMetadata", "TxnIndexEmpty") for api_key, schema in KAFKA_SCHEMAS.items()
}

_KIP_TOPIC = (Field("Name", Length.STRING), Field("TopicId", _UUID), Field("Partition", _INT32))
KIP_405_STORED_SEGMENT_FIELDS = (
    Field("SegmentId", _UUID),
    Field("StartOffset", _INT64),
    Field("EndOffset", _INT64),
    Field("LeaderEpoch", _INT32),
    Field("MaxTimestamp", _INT64),
    Field("EventTimestamp", _INT64),
    Field("SegmentLeaderEpochs", Array(Struct("SegmentLeaderEpochs", _EPOCH_FIELDS))),
    Field("SegmentSizeInBytes", _INT32),
    Field("RemoteLogSegmentState", _INT8),
)
"""Shared with the KIP's flat-file store, which leaves topic and partition to its header."""
KIP_405_STORED_DELETE_FIELDS = (
    Field("Epoch", _INT32),
    Field("EventTimestamp", _INT64),
    Field("RemotePartitionDeleteState", _INT8),
)

KIP_405_SCHEMAS = {
    SEGMENT_METADATA: Struct("RemoteLogSegmentMetadataRecord", (*_KIP_TOPIC, *KIP_405_STORED_SEGMENT_FIELDS)),
    SEGMENT_METADATA_UPDATE: Struct(
        "RemoteLogSegmentMetadataRecordUpdate",
        (
            *_KIP_TOPIC,
            Field("SegmentId", _UUID),
            Field("LeaderEpoch", _INT32),
            Field("EventTimestamp", _INT64),
            Field("RemoteLogSegmentState", _INT8),
        ),
    ),
    PARTITION_DELETE: Struct("RemotePartitionDeleteMetadataRecord", (*_KIP_TOPIC, *KIP_405_STORED_DELETE_FIELDS)),
}

"""Records of `__cluster_metadata` that describe a cluster: its topics, partitions, settings, nodes and features.

Source: metadata/src/main/resources/common/metadata/*.json of Apache Kafka 4.3. Other records are framed, not decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import Array, Field, Length, Primitive, Struct
from tieredctl.formats.varints import Buffer, read_unsigned_varint, unsigned_varint
from tieredctl.formats.wire import Values, read_whole, writer

FRAME_VERSION = 1

REGISTER_BROKER, TOPIC, PARTITION, CONFIG = 0, 2, 3, 4
REMOVE_TOPIC, FEATURE_LEVEL, PRODUCER_IDS, ZK_MIGRATION_STATE, REGISTER_CONTROLLER = 9, 12, 15, 21, 27
"""apiKeys of the records that are decoded."""

LIST_ITEM = "item"
"""The one field of an element of a list of bare values."""


def _record(name: str, *fields: Field) -> Struct:
    return Struct(name, fields, flexible=True)


def _list_of(kind: Primitive) -> Array:
    return Array(Struct("", (Field(LIST_ITEM, kind),)))


_INT32S, _UUIDS = _list_of(Primitive.INT32), _list_of(Primitive.UUID)

_ENDPOINTS = Array(
    _record(
        "Endpoint",
        Field("Name", Length.STRING),
        Field("Host", Length.STRING),
        Field("Port", Primitive.UINT16),
        Field("SecurityProtocol", Primitive.INT16),
    )
)
_FEATURES = Array(
    _record(
        "Feature",
        Field("Name", Length.STRING),
        Field("MinSupportedVersion", Primitive.INT16),
        Field("MaxSupportedVersion", Primitive.INT16),
    )
)

_REGISTER_BROKER_4 = _record(
    "RegisterBrokerRecord",
    Field("BrokerId", Primitive.INT32),
    Field("IsMigratingZkBroker", Primitive.BOOL),
    Field("IncarnationId", Primitive.UUID),
    Field("BrokerEpoch", Primitive.INT64),
    Field("EndPoints", _ENDPOINTS),
    Field("Features", _FEATURES),
    Field("Rack", Length.NULLABLE_STRING),
    Field("Fenced", Primitive.BOOL),
    Field("InControlledShutdown", Primitive.BOOL),
    Field("LogDirs", _UUIDS, tag=0, default=()),
    Field("CordonedLogDirs", _UUIDS, tag=1),
)
_PARTITION_2 = _record(
    "PartitionRecord",
    Field("PartitionId", Primitive.INT32),
    Field("TopicId", Primitive.UUID),
    Field("Replicas", _INT32S),
    Field("Isr", _INT32S),
    Field("RemovingReplicas", _INT32S),
    Field("AddingReplicas", _INT32S),
    Field("Leader", Primitive.INT32),
    Field("LeaderRecoveryState", Primitive.INT8, tag=0, default=0),
    Field("LeaderEpoch", Primitive.INT32),
    Field("PartitionEpoch", Primitive.INT32),
    Field("Directories", _UUIDS),
    Field("EligibleLeaderReplicas", _INT32S, tag=1),
    Field("LastKnownElr", _INT32S, tag=2),
)

KRAFT_SCHEMAS: Mapping[int, tuple[Struct, ...]] = {
    REGISTER_BROKER: (
        _REGISTER_BROKER_4.without("IsMigratingZkBroker", "InControlledShutdown", "LogDirs", "CordonedLogDirs"),
        _REGISTER_BROKER_4.without("IsMigratingZkBroker", "LogDirs", "CordonedLogDirs"),
        _REGISTER_BROKER_4.without("LogDirs", "CordonedLogDirs"),
        _REGISTER_BROKER_4.without("CordonedLogDirs"),
        _REGISTER_BROKER_4,
    ),
    TOPIC: (_record("TopicRecord", Field("Name", Length.STRING), Field("TopicId", Primitive.UUID)),),
    PARTITION: (
        _PARTITION_2.without("Directories", "EligibleLeaderReplicas", "LastKnownElr"),
        _PARTITION_2.without("EligibleLeaderReplicas", "LastKnownElr"),
        _PARTITION_2,
    ),
    CONFIG: (
        _record(
            "ConfigRecord",
            Field("ResourceType", Primitive.INT8),
            Field("ResourceName", Length.STRING),
            Field("Name", Length.STRING),
            Field("Value", Length.NULLABLE_STRING),
        ),
    ),
    REMOVE_TOPIC: (_record("RemoveTopicRecord", Field("TopicId", Primitive.UUID)),),
    FEATURE_LEVEL: (
        _record("FeatureLevelRecord", Field("Name", Length.STRING), Field("FeatureLevel", Primitive.INT16)),
    ),
    PRODUCER_IDS: (
        _record(
            "ProducerIdsRecord",
            Field("BrokerId", Primitive.INT32),
            Field("BrokerEpoch", Primitive.INT64),
            Field("NextProducerId", Primitive.INT64),
        ),
    ),
    ZK_MIGRATION_STATE: (_record("ZkMigrationStateRecord", Field("ZkMigrationState", Primitive.INT8)),),
    REGISTER_CONTROLLER: (
        _record(
            "RegisterControllerRecord",
            Field("ControllerId", Primitive.INT32),
            Field("IncarnationId", Primitive.UUID),
            Field("ZkMigrationReady", Primitive.BOOL),
            Field("EndPoints", _ENDPOINTS),
            Field("Features", _FEATURES),
        ),
    ),
}
"""By apiKey, then by version."""


class KraftRecord(NamedTuple):
    """A record of the metadata log. `fields` has Kafka's names, and is None where `payload` is not decoded."""

    api_key: int
    version: int
    payload: bytes
    fields: Values | None

    @property
    def schema(self) -> Struct | None:
        """What `fields` follows; None where the apiKey or its version is not known here."""
        versions = KRAFT_SCHEMAS.get(self.api_key, ())
        return versions[self.version] if self.version < len(versions) else None


def decode_kraft_record(value: Buffer) -> KraftRecord:
    """The record in a metadata log's or snapshot's record value. Raises DecodeError."""
    end = len(value)
    frame_version, position = read_unsigned_varint(value, 0, end)
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"frame version {frame_version} is not {FRAME_VERSION}", 0)
    api_key, position = read_unsigned_varint(value, position, end)
    version, position = read_unsigned_varint(value, position, end)
    payload = bytes(value[position:])
    framed = KraftRecord(api_key, version, payload, None)
    if framed.schema is None:
        return framed
    try:
        return framed._replace(fields=read_whole(framed.schema, payload))
    except DecodeError as error:
        raise DecodeError(error.reason, position + error.position) from None


def encode_kraft_record(api_key: int, version: int, fields: Values) -> bytes:
    """A record's value; `fields` as `decode_kraft_record` gives them."""
    header = unsigned_varint(FRAME_VERSION) + unsigned_varint(api_key) + unsigned_varint(version)
    return header + writer(KRAFT_SCHEMAS[api_key][version])(fields)

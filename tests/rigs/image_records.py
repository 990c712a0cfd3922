"""An image of a cluster as the records that it would be written as: for comparing it with Kafka's own image.

Of each record a key and its JSON, spelled as Kafka spells it. What Kafka's image does not keep is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tieredctl.formats.kafka_json import json_document
from tieredctl.formats.kraft_log import KraftRecordType
from tieredctl.kraft.image import MIGRATING_DIRECTORY, ClusterImage
from tieredctl.model.ids import uuid_text

Records = dict[tuple[object, ...], dict[str, Any]]

_KEYS: Mapping[str, tuple[str, ...]] = {
    "REGISTER_BROKER_RECORD": ("brokerId",),
    "TOPIC_RECORD": ("topicId",),
    "PARTITION_RECORD": ("topicId", "partitionId"),
    "CONFIG_RECORD": ("resourceType", "resourceName", "name"),
    "DELEGATION_TOKEN_RECORD": ("tokenId",),
    "USER_SCRAM_CREDENTIAL_RECORD": ("mechanism", "name"),
    "FEATURE_LEVEL_RECORD": ("name",),
    "PRODUCER_IDS_RECORD": (),
    "ACCESS_CONTROL_ENTRY_RECORD": ("id",),
    "ZK_MIGRATION_STATE_RECORD": (),
    "REGISTER_CONTROLLER_RECORD": ("controllerId",),
}
_NOT_KEPT = {
    "REGISTER_BROKER_RECORD": {"isMigratingZkBroker", "inControlledShutdown"},  # as the metadata version has them
    "PRODUCER_IDS_RECORD": {"brokerId", "brokerEpoch"},
}


def kafka_records(written: Iterable[Mapping[str, Any]]) -> Records:
    """What Kafka's image writes."""
    records = dict(_keyed(one["type"], dict(one["data"])) for one in written)
    return {key: data for key, data in records.items() if data != {"zkMigrationState": 0}}


def image_records(image: ClusterImage) -> Records:
    return dict(_keyed(kind.kafka_name, _json(kind, fields)) for kind, fields in _fields(image))


def _json(kind: KraftRecordType, fields: Mapping[str, Any]) -> dict[str, Any]:
    schema = kind.message.schema(kind.message.latest_version)
    return json_document(schema, {one.name: fields.get(one.name, one.default) for one in schema.fields})


def _fields(image: ClusterImage) -> Iterator[tuple[KraftRecordType, Mapping[str, Any]]]:
    for topic_id, topic in image.topics.items():
        yield KraftRecordType.TOPIC, {"Name": topic.name, "TopicId": topic_id}
        for partition in topic.partitions.values():
            yield KraftRecordType.PARTITION, partition
    yield from ((KraftRecordType.REGISTER_BROKER, one) for one in image.brokers.values())
    yield from ((KraftRecordType.REGISTER_CONTROLLER, one) for one in image.controllers.values())
    for (kind, name), settings in image.configs.items():
        for key, value in settings.items():
            resource = {"ResourceType": kind, "ResourceName": name}
            yield KraftRecordType.CONFIG, {**resource, "Name": key, "Value": value}
    for name, level in image.features.items():
        yield KraftRecordType.FEATURE_LEVEL, {"Name": name, "FeatureLevel": level}
    for entity, quotas in image.quotas.items():
        parts = [{"EntityType": kind, "EntityName": name} for kind, name in entity]
        for key, number in quotas.items():
            yield KraftRecordType.CLIENT_QUOTA, {"Entity": parts, "Key": key, "Value": number, "Remove": False}
    yield from ((KraftRecordType.ACCESS_CONTROL_ENTRY, one) for one in image.acls.values())
    yield from ((KraftRecordType.USER_SCRAM_CREDENTIAL, one) for one in image.credentials.values())
    yield from ((KraftRecordType.DELEGATION_TOKEN, one) for one in image.tokens.values())
    if image.next_producer_id is not None:
        yield KraftRecordType.PRODUCER_IDS, {"NextProducerId": image.next_producer_id}
    if image.zk_migration_state:
        yield KraftRecordType.ZK_MIGRATION_STATE, {"ZkMigrationState": image.zk_migration_state}


def _keyed(kind: str, data: dict[str, Any]) -> tuple[tuple[object, ...], dict[str, Any]]:
    if kind == "CLIENT_QUOTA_RECORD":
        data["entity"] = sorted(data["entity"], key=lambda part: part["entityType"])
        return (kind, str(data["entity"]), data["key"]), data
    for name in _NOT_KEPT.get(kind, ()):
        data.pop(name, None)
    for name in ("directories", "logDirs"):
        data[name] = _known_directories(kind, data.get(name))
    for name in ("endPoints", "features"):
        if isinstance(data.get(name), list):
            data[name] = sorted(data[name], key=lambda one: str(one["name"]))
    return (kind, *(data[name] for name in _KEYS[kind])), {name: value for name, value in data.items() if value != []}


def _known_directories(kind: str, given: list[str] | None) -> list[str]:
    """Kafka sorts a broker's, and writes none of a partition where all of them are unknown."""
    if kind == "REGISTER_BROKER_RECORD":
        return sorted(given or [])
    return [] if all(one == uuid_text(MIGRATING_DIRECTORY) for one in given or []) else given or []

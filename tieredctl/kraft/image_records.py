"""An image of a cluster as the records that a snapshot has of it (Kafka's ImageWriter)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tieredctl.formats.kraft_log import KraftLogRecord, KraftRecord, KraftRecordType, encode_kraft_record
from tieredctl.formats.record_batches import ControlType
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import METADATA_VERSION, ClusterImage
from tieredctl.process.progress import note_more

RecordVersions = Mapping[int, int]
"""By apiKey, the version in which a cluster writes its records: its metadata.version decides that."""
NO_BROKER = -1


def note_versions(records: Iterable[KraftLogRecord], versions: dict[int, int]) -> Iterator[KraftLogRecord]:
    """The same records, of which the highest version of each type is noted."""
    for record in records:
        content = record.content
        if isinstance(content, KraftRecord):
            versions[content.api_key] = max(content.version, versions.get(content.api_key, 0))
        note_more("records of the cluster's metadata read", 1)
        yield record


def image_records(image: ClusterImage, versions: RecordVersions) -> Iterator[bytes]:
    """The values of the records, metadata.version first: nothing else tells how to read the rest. A type of which the
    cluster never wrote a record has none here."""
    for kind, fields in _records(image):
        yield encode_kraft_record(kind, versions.get(kind, 0), fields)


def image_controls(image: ClusterImage) -> list[tuple[ControlType, Values]]:
    """KRaft's version and voters, where the metadata log has them (KIP-853)."""
    if not image.kraft_version:
        return []
    controls: list[tuple[ControlType, Values]] = [
        (ControlType.KRAFT_VERSION, {"Version": 0, "KRaftVersion": image.kraft_version})
    ]
    if image.voters is not None:
        controls.append((ControlType.KRAFT_VOTERS, {"Version": 0, "Voters": list(image.voters.values())}))
    return controls


def _records(image: ClusterImage) -> Iterator[tuple[KraftRecordType, Values]]:
    for name, level in sorted(image.features.items(), key=lambda feature: feature[0] != METADATA_VERSION):
        yield KraftRecordType.FEATURE_LEVEL, {"Name": name, "FeatureLevel": level}
    if image.zk_migration_state:
        yield KraftRecordType.ZK_MIGRATION_STATE, {"ZkMigrationState": image.zk_migration_state}
    for broker in image.brokers.values():
        yield KraftRecordType.REGISTER_BROKER, broker
    for controller in image.controllers.values():
        yield KraftRecordType.REGISTER_CONTROLLER, controller
    for topic_id, topic in image.topics.items():
        yield KraftRecordType.TOPIC, {"Name": topic.name, "TopicId": topic_id}
        for partition in topic.partitions.values():
            yield KraftRecordType.PARTITION, partition
    for (kind, resource), settings in image.configs.items():
        for name, value in settings.items():
            fields = {"ResourceType": kind, "ResourceName": resource, "Name": name, "Value": value}
            yield KraftRecordType.CONFIG, fields
    for entity, quotas in image.quotas.items():
        parts = [{"EntityType": kind, "EntityName": name} for kind, name in entity]
        for key, quota in quotas.items():
            yield KraftRecordType.CLIENT_QUOTA, {"Entity": parts, "Key": key, "Value": quota, "Remove": False}
    if image.next_producer_id is not None:
        ids = {"BrokerId": NO_BROKER, "BrokerEpoch": NO_BROKER, "NextProducerId": image.next_producer_id}
        yield KraftRecordType.PRODUCER_IDS, ids
    yield from _access(image)


def _access(image: ClusterImage) -> Iterator[tuple[KraftRecordType, dict[str, Any]]]:
    for acl in image.acls.values():
        yield KraftRecordType.ACCESS_CONTROL_ENTRY, acl
    for credential in image.credentials.values():
        yield KraftRecordType.USER_SCRAM_CREDENTIAL, credential
    for token in image.tokens.values():
        yield KraftRecordType.DELEGATION_TOKEN, token

"""An image of a cluster as a list of the things that it has, each with its values: for showing and comparing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from tieredctl.formats.kafka_json import json_name
from tieredctl.formats.kafka_settings import is_dynamic_broker_setting
from tieredctl.formats.schema import UNKNOWN_TAGS
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage
from tieredctl.model.ids import UUID_BYTES, uuid_text
from tieredctl.process.redaction import HIDDEN, is_secret

_SECRET_FIELDS = ("Salt", "StoredKey", "ServerKey")
_RESOURCES = {TOPIC_RESOURCE: "topic", BROKER_RESOURCE: "broker", 16: "client-metrics", 32: "group"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class Kind(StrEnum):
    """What a thing is."""

    FEATURE = "feature"
    VOTER = "voter"
    CONTROLLER = "controller"
    BROKER = "broker"
    TOPIC = "topic"
    PARTITION = "partition"
    CONFIG = "config"
    QUOTA = "quota"
    ACL = "acl"
    CREDENTIAL = "credential"
    TOKEN = "delegation-token"
    PRODUCER_IDS = "producer-ids"


class SettingKey(NamedTuple):
    """What names a setting: ConfigResource.Type, the resource, and the setting itself."""

    resource_type: int
    resource: str
    setting: str


class Entry(NamedTuple):
    """A thing. `key` names it among its kind, `subject` for people. `values` may hold secrets: see `shown`."""

    kind: Kind
    key: object
    subject: str
    values: Mapping[str, Any]


def entries(image: ClusterImage) -> Iterator[Entry]:
    """All that an image has, kind by kind."""
    for name, level in image.features.items():
        yield Entry(Kind.FEATURE, name, name, {"FeatureLevel": level})
    if image.kraft_version:
        yield Entry(Kind.FEATURE, "kraft.version", "kraft.version", {"FeatureLevel": image.kraft_version})
    yield from _nodes(Kind.VOTER, image.voters or {})
    yield from _nodes(Kind.CONTROLLER, image.controllers)
    yield from _nodes(Kind.BROKER, image.brokers)
    for topic_id, topic in image.topics.items():
        yield Entry(Kind.TOPIC, topic_id, topic.name, {"TopicId": topic_id, "Partitions": len(topic.partitions)})
        for number, partition in sorted(topic.partitions.items()):
            yield Entry(Kind.PARTITION, (topic_id, number), f"{topic.name}-{number}", partition)
    for (kind, name), settings in image.configs.items():
        resource = _RESOURCES.get(kind, f"resource type {kind}")
        for setting, value in settings.items():
            subject = f"{resource} {name or '(default)'}: {setting}"
            yield Entry(Kind.CONFIG, SettingKey(kind, name, setting), subject, {"Value": value})
    yield from _access(image)
    if image.next_producer_id is not None:
        yield Entry(Kind.PRODUCER_IDS, 0, "next producer id", {"NextProducerId": image.next_producer_id})


def _nodes(kind: Kind, nodes: Mapping[int, Values]) -> Iterator[Entry]:
    for node_id, values in sorted(nodes.items()):
        yield Entry(kind, node_id, str(node_id), {name: _by_name(value) for name, value in values.items()})


def _by_name(value: Any) -> Any:
    """Listeners and features in one order: Kafka keeps them in hash tables, and writes them in any."""
    if isinstance(value, list) and all(isinstance(one, Mapping) and "Name" in one for one in value):
        return sorted(value, key=lambda one: str(one["Name"]))
    return value


def _access(image: ClusterImage) -> Iterator[Entry]:
    for entity, quotas in image.quotas.items():
        of = ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity)
        for quota, value in quotas.items():
            yield Entry(Kind.QUOTA, (entity, quota), f"{of}: {quota}", {"Value": value})
    for acl_id, acl in image.acls.items():
        yield Entry(Kind.ACL, acl_id, f"{acl['Principal']} on {acl['ResourceName']}", acl)
    for (mechanism, user), credential in image.credentials.items():
        subject = f"{user}, {_MECHANISMS.get(mechanism, f'mechanism {mechanism}')}"
        yield Entry(Kind.CREDENTIAL, (mechanism, user), subject, credential)
    for token_id, token in image.tokens.items():
        yield Entry(Kind.TOKEN, token_id, token_id, token)


def shown(entry: Entry, values: Mapping[str, Any]) -> dict[str, Any]:
    """Some values of an entry as JSON, under Kafka's names in camel case: ids as text, secrets hidden."""
    hidden = set(_SECRET_FIELDS)
    if is_secret_setting(entry.key):
        hidden.add("Value")
    return {
        json_name(name): HIDDEN if name in hidden else _plain(value)
        for name, value in values.items()
        if name != UNKNOWN_TAGS
    }


def is_secret_setting(key: object) -> bool:
    """Whether an entry's key is that of a sensitive setting. Kafka takes broker settings that it does not know, such as
    a plugin's, for sensitive (KafkaConfig)."""
    if not isinstance(key, SettingKey):
        return False
    is_unknown = key.resource_type == BROKER_RESOURCE and not is_dynamic_broker_setting(key.setting)
    return is_unknown or is_secret(key.setting)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return uuid_text(value) if len(value) == UUID_BYTES else value.hex()
    if isinstance(value, Mapping):
        return {json_name(name): _plain(one) for name, one in value.items() if name != UNKNOWN_TAGS}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value

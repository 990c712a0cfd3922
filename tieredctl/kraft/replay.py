"""Replays a snapshot and the records after it, as brokers do (MetadataLoader, MetadataBatchLoader).

What each record of the metadata log does to the image of a cluster.

Sources: MetadataDelta.replay and the deltas below it, PartitionRegistration.merge, BrokerRegistration.cloneWith.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TypeVar

from tieredctl.formats.control_records import ControlRecord
from tieredctl.formats.kraft_log import KraftLogRecord, KraftRecord, KraftRecordType
from tieredctl.formats.record_batches import ControlType
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import (
    METADATA_VERSION,
    MIGRATING_DIRECTORY,
    TOPIC_RESOURCE,
    ClusterImage,
    RefusedRecord,
    Topic,
)
from tieredctl.model.ids import uuid_text

_TRANSACTION_ENDS = (KraftRecordType.END_TRANSACTION, KraftRecordType.ABORT_TRANSACTION)


class MetadataReplay:
    """An image, and the records of a transaction of which no end came yet."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.clock_fell_ms = 0
        """By how much the time of one record is at most before that of an earlier one."""
        self._latest_ms = -1
        self._waiting: list[tuple[int, KraftRecord]] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether the last records wait for the end of their transaction: no broker has applied them."""
        return self._waiting is not None

    def load_snapshot(self, records: Iterable[KraftLogRecord], end_offset: int) -> None:
        """The records of a snapshot with this end offset (exclusive), header and footer included. Comes first."""
        for record in records:
            self.take(end_offset - 1, record.content)
        self.image.end_offset = end_offset
        self._latest_ms = self.image.as_of_ms

    def load_log(self, records: Iterable[KraftLogRecord]) -> None:
        """The log's records from there on."""
        for record in records:
            self.take(record.offset, record.content)
            self.image.end_offset = record.offset + 1
            self.image.as_of_ms = record.timestamp
            self._latest_ms = max(self._latest_ms, record.timestamp)
            self.clock_fell_ms = max(self.clock_fell_ms, self._latest_ms - record.timestamp)

    def take(self, offset: int, record: KraftRecord | ControlRecord) -> None:
        """Applies the record at an offset of the log; those of a transaction when that ends. One that does not fit
        is noted in `image.refused`."""
        try:
            if isinstance(record, ControlRecord):
                _apply_control(self.image, record)
            elif record.api_key == KraftRecordType.BEGIN_TRANSACTION:
                self._begin()
            elif record.api_key in _TRANSACTION_ENDS:
                self._end(commits=record.api_key == KraftRecordType.END_TRANSACTION)
            elif self._waiting is not None:
                self._waiting.append((offset, record))
            else:
                self._apply(offset, record)
        except DoesNotFit as refused:
            self.image.refused.append(RefusedRecord(offset, record.type_name, str(refused)))

    def _begin(self) -> None:
        if self._waiting is not None:
            raise DoesNotFit("a transaction is open already")
        self._waiting = []

    def _end(self, *, commits: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            raise DoesNotFit("no transaction is open")
        for offset, record in waiting if commits else ():
            self._apply(offset, record)

    def _apply(self, offset: int, record: KraftRecord) -> None:
        if record.fields is None:
            self.image.unknown_records[f"{record.type_name}, version {record.version}"] += 1
            return
        try:
            apply_record(self.image, KraftRecordType(record.api_key), record.fields)
        except DoesNotFit as refused:
            self.image.refused.append(RefusedRecord(offset, record.type_name, str(refused)))


def _apply_control(image: ClusterImage, record: ControlRecord) -> None:
    fields = record.fields
    if fields is None:
        image.unknown_records[f"control record {record.type}"] += 1
    elif record.type == ControlType.KRAFT_VOTERS:
        image.voters = {voter["VoterId"]: voter for voter in fields["Voters"]}
    elif record.type == ControlType.KRAFT_VERSION:
        image.kraft_version = fields["KRaftVersion"]
    elif record.type == ControlType.LEADER_CHANGE:
        image.leader = fields["LeaderId"]
    elif record.type == ControlType.SNAPSHOT_HEADER:
        image.as_of_ms = fields["LastContainedLogTimestamp"]


_Of = TypeVar("_Of")
_Value = TypeVar("_Value")

NO_LEADER_CHANGE, NO_STATE_CHANGE = -2, -1
_FENCED = {0: None, 1: True, -1: False}
_IN_CONTROLLED_SHUTDOWN = {0: None, 1: True}
_REPLACED_BY_CHANGE = ("Isr", "Replicas", "RemovingReplicas", "AddingReplicas", "Directories")
_ELR = ("EligibleLeaderReplicas", "LastKnownElr")


class DoesNotFit(Exception):
    """A record that contradicts what came before it; the text says how."""


def apply_record(image: ClusterImage, kind: KraftRecordType, fields: Values) -> None:
    """Changes the image. Raises DoesNotFit, the image as it was. Marks of transactions change nothing here."""
    effect = _EFFECTS.get(kind)
    if effect is not None:
        effect(image, fields)


def _complete(kind: KraftRecordType, fields: Values) -> Values:
    """The fields of the latest version, with defaults where the record's own version has none."""
    return {name: fields.get(name, default) for name, default in _defaults(kind)}


@cache
def _defaults(kind: KraftRecordType) -> list[tuple[str, object]]:
    return [(one.name, one.default) for one in kind.message.schema(kind.message.latest_version).fields]


def _topic(image: ClusterImage, fields: Values) -> None:
    image.topics[fields["TopicId"]] = Topic(fields["Name"])


def _remove_topic(image: ClusterImage, fields: Values) -> None:
    topic = _known_topic(image, fields)
    del image.topics[fields["TopicId"]]
    image.configs.pop((TOPIC_RESOURCE, topic.name), None)


def _partition(image: ClusterImage, fields: Values) -> None:
    partition = _complete(KraftRecordType.PARTITION, fields)
    partition |= {name: partition[name] or [] for name in _ELR}
    partition["Directories"] = _directories(partition["Directories"], partition["Replicas"])
    _known_topic(image, fields).partitions[fields["PartitionId"]] = partition


def _change_partition(image: ClusterImage, fields: Values) -> None:
    partitions = _known_topic(image, fields).partitions
    number = fields["PartitionId"]
    if number not in partitions:
        raise DoesNotFit(f"topic {uuid_text(fields['TopicId'])} has no partition {number}")
    partition = dict(partitions[number])
    for name in (*_REPLACED_BY_CHANGE, *_ELR):
        if fields.get(name) is not None:
            partition[name] = fields[name]
    partition["Directories"] = _directories(partition["Directories"], partition["Replicas"])
    if fields["Leader"] != NO_LEADER_CHANGE:
        partition |= {"Leader": fields["Leader"], "LeaderEpoch": partition["LeaderEpoch"] + 1}
    if fields["LeaderRecoveryState"] != NO_STATE_CHANGE:
        partition["LeaderRecoveryState"] = fields["LeaderRecoveryState"]
    partition["PartitionEpoch"] += 1
    partitions[number] = partition


def _directories(stated: list[bytes], replicas: list[int]) -> list[bytes]:
    return stated or [MIGRATING_DIRECTORY] * len(replicas)


def _clear_elr(image: ClusterImage, fields: Values) -> None:
    name = fields["TopicName"]
    topics = [topic for topic in image.topics.values() if name in ("", topic.name)]
    if name and not topics:
        raise DoesNotFit(f"there is no topic {name}")
    for topic in topics:
        for number, partition in topic.partitions.items():
            if any(partition[one] for one in _ELR):
                epoch = partition["PartitionEpoch"] + 1
                topic.partitions[number] = {**partition, **{one: [] for one in _ELR}, "PartitionEpoch": epoch}


def _known_topic(image: ClusterImage, fields: Values) -> Topic:
    topic = image.topics.get(fields["TopicId"])
    if topic is None:
        raise DoesNotFit(f"there is no topic with id {uuid_text(fields['TopicId'])}")
    return topic


def _config(image: ClusterImage, fields: Values) -> None:
    resource = fields["ResourceType"], fields["ResourceName"]
    _set(image.configs, resource, fields["Name"], fields["Value"])


def _quota(image: ClusterImage, fields: Values) -> None:
    parts = [(part["EntityType"], part["EntityName"]) for part in fields["Entity"]]
    entity = tuple(sorted(parts, key=lambda part: part[0]))
    _set(image.quotas, entity, fields["Key"], None if fields["Remove"] else fields["Value"])


def _set(into: dict[_Of, dict[str, _Value]], of: _Of, name: str, value: _Value | None) -> None:
    """Sets a value, or with None removes it; what has no values left is removed, too."""
    values = into.setdefault(of, {})
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
    if not values:
        del into[of]


def _register_broker(image: ClusterImage, fields: Values) -> None:
    image.brokers[fields["BrokerId"]] = _complete(KraftRecordType.REGISTER_BROKER, fields)


def _unregister_broker(image: ClusterImage, fields: Values) -> None:
    image.brokers.pop(fields["BrokerId"], None)


def _fence(image: ClusterImage, fields: Values) -> None:
    _registered(image, fields["Id"], fields["Epoch"])["Fenced"] = True


def _unfence(image: ClusterImage, fields: Values) -> None:
    _registered(image, fields["Id"], fields["Epoch"])["Fenced"] = False


def _change_broker(image: ClusterImage, fields: Values) -> None:
    fenced, shutdown = fields["Fenced"], fields.get("InControlledShutdown", 0)
    if fenced not in _FENCED or shutdown not in _IN_CONTROLLED_SHUTDOWN:
        raise DoesNotFit(f"fenced {fenced} or inControlledShutdown {shutdown} is not a change")
    changes = {
        "Fenced": _FENCED[fenced],
        "InControlledShutdown": _IN_CONTROLLED_SHUTDOWN[shutdown],
        "LogDirs": fields.get("LogDirs") or None,
        "CordonedLogDirs": fields.get("CordonedLogDirs"),
    }
    broker = _registered(image, fields["BrokerId"], fields["BrokerEpoch"])
    broker.update({name: value for name, value in changes.items() if value is not None})


def _registered(image: ClusterImage, broker_id: int, epoch: int) -> Values:
    """A copy that takes the registration's place: an earlier image may share it."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise DoesNotFit(f"broker {broker_id} is not registered")
    if broker["BrokerEpoch"] != epoch:
        raise DoesNotFit(f"broker {broker_id} is registered with epoch {broker['BrokerEpoch']}, not {epoch}")
    image.brokers[broker_id] = dict(broker)
    return image.brokers[broker_id]


def _register_controller(image: ClusterImage, fields: Values) -> None:
    image.controllers[fields["ControllerId"]] = fields


def _feature(image: ClusterImage, fields: Values) -> None:
    name, level = fields["Name"], fields["FeatureLevel"]
    if level == 0 and name != METADATA_VERSION:
        image.features.pop(name, None)
    else:
        image.features[name] = level


def _producer_ids(image: ClusterImage, fields: Values) -> None:
    image.next_producer_id = fields["NextProducerId"]


def _zk_migration(image: ClusterImage, fields: Values) -> None:
    image.zk_migration_state = fields["ZkMigrationState"]


def _acl(image: ClusterImage, fields: Values) -> None:
    image.acls[fields["Id"]] = fields


def _remove_acl(image: ClusterImage, fields: Values) -> None:
    if image.acls.pop(fields["Id"], None) is None:
        raise DoesNotFit(f"there is no ACL with id {uuid_text(fields['Id'])}")


def _credential(image: ClusterImage, fields: Values) -> None:
    image.credentials[fields["Mechanism"], fields["Name"]] = fields


def _remove_credential(image: ClusterImage, fields: Values) -> None:
    image.credentials.pop((fields["Mechanism"], fields["Name"]), None)


def _token(image: ClusterImage, fields: Values) -> None:
    image.tokens[fields["TokenId"]] = fields


def _remove_token(image: ClusterImage, fields: Values) -> None:
    image.tokens.pop(fields["TokenId"], None)


_EFFECTS: Mapping[KraftRecordType, Callable[[ClusterImage, Values], None]] = {
    KraftRecordType.REGISTER_BROKER: _register_broker,
    KraftRecordType.UNREGISTER_BROKER: _unregister_broker,
    KraftRecordType.TOPIC: _topic,
    KraftRecordType.PARTITION: _partition,
    KraftRecordType.CONFIG: _config,
    KraftRecordType.PARTITION_CHANGE: _change_partition,
    KraftRecordType.FENCE_BROKER: _fence,
    KraftRecordType.UNFENCE_BROKER: _unfence,
    KraftRecordType.REMOVE_TOPIC: _remove_topic,
    KraftRecordType.DELEGATION_TOKEN: _token,
    KraftRecordType.USER_SCRAM_CREDENTIAL: _credential,
    KraftRecordType.FEATURE_LEVEL: _feature,
    KraftRecordType.CLIENT_QUOTA: _quota,
    KraftRecordType.PRODUCER_IDS: _producer_ids,
    KraftRecordType.BROKER_REGISTRATION_CHANGE: _change_broker,
    KraftRecordType.ACCESS_CONTROL_ENTRY: _acl,
    KraftRecordType.REMOVE_ACCESS_CONTROL_ENTRY: _remove_acl,
    KraftRecordType.ZK_MIGRATION_STATE: _zk_migration,
    KraftRecordType.REMOVE_USER_SCRAM_CREDENTIAL: _remove_credential,
    KraftRecordType.REMOVE_DELEGATION_TOKEN: _remove_token,
    KraftRecordType.REGISTER_CONTROLLER: _register_controller,
    KraftRecordType.CLEAR_ELR: _clear_elr,
}

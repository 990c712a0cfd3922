"""Random sequences of metadata records, most of which fit what came before them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tieredctl.formats.kraft_log import KraftRecordType as Kind
from tieredctl.formats.kraft_log import encode_kraft_record
from tieredctl.kraft.image import ClusterImage

NO_OP: bytes = encode_kraft_record(Kind.NO_OP, 0, {})
RandomRecord = tuple[Kind, Mapping[str, Any]]


def encoded(kind: Kind, fields: Mapping[str, Any]) -> bytes:
    """In the latest version, with Kafka's defaults for what is not given."""
    version = kind.message.latest_version
    schema = kind.message.schema(version)
    return encode_kraft_record(kind, version, {one.name: fields.get(one.name, one.default) for one in schema.fields})


class RandomRecords:
    """Draws records by what an image has: it must take each of them before the next is drawn."""

    def __init__(self, seed: int, image: ClusterImage) -> None:
        self.chance = random.Random(seed)
        self._image = image

    def draw(self, *, in_transaction: bool = False) -> bytes:
        """One more record."""
        makers: list[Callable[[], RandomRecord]] = [self._topic, self._partition, self._partition, self._config]
        makers += [self._broker, self._quota, self._acl, self._credential, self._token, self._feature, self._others]
        if not in_transaction:  # where Kafka forgets the settings of a topic that a transaction makes and removes
            makers += [self._change_partition, self._change_broker, self._remove_topic, self._remove, self._clear_elr]
            makers += [self._change_partition, self._change_broker]
        return encoded(*self.chance.choice(makers)())

    def _uuid(self) -> bytes:
        return bytes([1]) + self.chance.randbytes(15)

    def _nodes(self) -> list[int]:
        return self.chance.sample(range(5), self.chance.randint(1, 3))

    def _topic_id(self) -> bytes:
        known = list(self._image.topics)
        return self.chance.choice(known) if known and self.chance.random() < 0.95 else self._uuid()

    def _topic(self) -> RandomRecord:
        taken = {topic.name for topic in self._image.topics.values()}
        name = next(name for name in self._names() if name not in taken)
        return Kind.TOPIC, {"Name": name, "TopicId": self._uuid()}

    def _names(self) -> Iterator[str]:
        while True:
            yield f"t{self.chance.randrange(100)}"

    def _partition(self) -> RandomRecord:
        nodes = self._nodes()
        return Kind.PARTITION, {
            "PartitionId": self.chance.randrange(3),
            "TopicId": self._topic_id(),
            "Replicas": nodes,
            "Isr": nodes[:1],
            "Leader": nodes[0],
            "LeaderEpoch": 0,
            "PartitionEpoch": 0,
            "Directories": [self._uuid() for _ in nodes] if self.chance.random() < 0.7 else [],
            "EligibleLeaderReplicas": self.chance.choice([None, nodes[1:]]),
            "LastKnownElr": self.chance.choice([None, nodes[:1]]),
        }

    def _change_partition(self) -> RandomRecord:
        topic_id = self._topic_id()
        known = list(self._image.topics[topic_id].partitions) if topic_id in self._image.topics else []
        number = self.chance.choice(known) if known and self.chance.random() < 0.95 else 7
        fields: dict[str, Any] = {"PartitionId": number, "TopicId": topic_id}
        nodes = self._nodes()
        options = {
            "Isr": nodes[:1],
            "Leader": self.chance.choice([-1, *nodes]),
            "RemovingReplicas": nodes[1:],
            "AddingReplicas": nodes[1:],
            "LeaderRecoveryState": self.chance.choice([0, 1]),
            "EligibleLeaderReplicas": nodes[1:],
            "LastKnownElr": nodes[:1],
        }
        if self.chance.random() < 0.3:
            options |= {"Replicas": nodes, "Directories": [self._uuid() for _ in nodes]}
            return Kind.PARTITION_CHANGE, fields | options
        chosen = self.chance.sample(sorted(options), self.chance.randint(0, 3))
        return Kind.PARTITION_CHANGE, fields | {name: options[name] for name in chosen}

    def _remove_topic(self) -> RandomRecord:
        return Kind.REMOVE_TOPIC, {"TopicId": self._topic_id()}

    def _clear_elr(self) -> RandomRecord:
        names = [topic.name for topic in self._image.topics.values()]
        return Kind.CLEAR_ELR, {"TopicName": self.chance.choice(["", *names])}

    def _config(self) -> RandomRecord:
        names = [topic.name for topic in self._image.topics.values()]
        kind, name = self.chance.choice([(4, ""), (4, "1"), *((2, name) for name in names)])
        value = self.chance.choice([None, "", "1", "2"])
        key = self.chance.choice(["retention.ms", "segment.bytes"])
        return Kind.CONFIG, {"ResourceType": kind, "ResourceName": name, "Name": key, "Value": value}

    def _broker(self) -> RandomRecord:
        endpoint = {"Name": "PLAINTEXT", "Host": "h", "Port": 9092, "SecurityProtocol": 0}
        feature = {"Name": "metadata.version", "MinSupportedVersion": 7, "MaxSupportedVersion": 30}
        return Kind.REGISTER_BROKER, {
            "BrokerId": self.chance.randrange(5),
            "IncarnationId": self._uuid(),
            "BrokerEpoch": self.chance.randrange(1_000),
            "EndPoints": [endpoint],
            "Features": [feature],
            "Rack": self.chance.choice([None, "", "a"]),
            "Fenced": self.chance.choice([True, False]),
            "LogDirs": [self._uuid() for _ in range(self.chance.randint(1, 2))],
        }

    def _change_broker(self) -> RandomRecord:
        known = list(self._image.brokers.values())
        if not known:
            return self._broker()
        broker = self.chance.choice(known)
        off = int(self.chance.random() < 0.05)
        named = {"Id": broker["BrokerId"], "Epoch": broker["BrokerEpoch"] + off}
        changed = {"BrokerId": broker["BrokerId"], "BrokerEpoch": broker["BrokerEpoch"] + off}
        changes = {
            "Fenced": self.chance.choice([0, 1, -1]),
            "LogDirs": self.chance.choice([[], [self._uuid()]]),
            "CordonedLogDirs": self.chance.choice([None, [], [self._uuid()]]),
        }
        options: list[RandomRecord] = [
            (Kind.FENCE_BROKER, named),
            (Kind.UNFENCE_BROKER, named),
            (Kind.BROKER_REGISTRATION_CHANGE, changed | changes),
            (Kind.UNREGISTER_BROKER, changed),
        ]
        return self.chance.choice(options)

    def _quota(self) -> RandomRecord:
        user = {"EntityType": "user", "EntityName": self.chance.choice([None, "alice"])}
        client = {"EntityType": "client-id", "EntityName": "c"}
        return Kind.CLIENT_QUOTA, {
            "Entity": self.chance.choice([[user], [user, client], [client, user]]),
            "Key": self.chance.choice(["producer_byte_rate", "consumer_byte_rate"]),
            "Value": float(self.chance.randrange(100)),
            "Remove": self.chance.random() < 0.3,
        }

    def _acl(self) -> RandomRecord:
        known = list(self._image.acls)
        return Kind.ACCESS_CONTROL_ENTRY, {
            "Id": self.chance.choice([*known, self._uuid()]),
            "ResourceType": 2,
            "ResourceName": "t",
            "PatternType": 3,
            "Principal": "User:alice",
            "Host": "*",
            "Operation": self.chance.choice([3, 4]),
            "PermissionType": 3,
        }

    def _credential(self) -> RandomRecord:
        secret = self.chance.randbytes(8)
        named = {"Name": self.chance.choice(["alice", "bob"]), "Mechanism": self.chance.choice([1, 2])}
        keys = {"Salt": secret, "StoredKey": secret, "ServerKey": secret, "Iterations": 4096}
        return Kind.USER_SCRAM_CREDENTIAL, named | keys

    def _token(self) -> RandomRecord:
        return Kind.DELEGATION_TOKEN, {
            "Owner": "User:alice",
            "Requester": "User:bob",
            "Renewers": ["User:carol"],
            "IssueTimestamp": 1,
            "MaxTimestamp": 3,
            "ExpirationTimestamp": self.chance.randrange(3),
            "TokenId": self.chance.choice(["one", "two"]),
        }

    def _remove(self) -> RandomRecord:
        acls = [*self._image.acls, self._uuid()]
        options: list[RandomRecord] = [
            (Kind.REMOVE_ACCESS_CONTROL_ENTRY, {"Id": acls[0]}),
            (Kind.REMOVE_USER_SCRAM_CREDENTIAL, {"Name": "alice", "Mechanism": 1}),
            (Kind.REMOVE_DELEGATION_TOKEN, {"TokenId": "one"}),
        ]
        return self.chance.choice(options)

    def _feature(self) -> RandomRecord:
        name = self.chance.choice(["group.version", "transaction.version"])
        return Kind.FEATURE_LEVEL, {"Name": name, "FeatureLevel": self.chance.choice([0, 1])}

    def _others(self) -> RandomRecord:
        ids = {"BrokerId": 1, "BrokerEpoch": 1, "NextProducerId": self.chance.randrange(10**6)}
        controller = {"ControllerId": 3, "IncarnationId": self._uuid(), "ZkMigrationReady": False}
        options: list[RandomRecord] = [
            (Kind.PRODUCER_IDS, ids),
            (Kind.REGISTER_CONTROLLER, controller),
            (Kind.NO_OP, {}),
        ]
        return self.chance.choice(options)

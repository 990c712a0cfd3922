"""A cluster without a backup set: its topics as the keys of its objects name them, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kraft_log import KraftRecordType
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.kraft.image import METADATA_VERSION, TOPIC_RESOURCE, ClusterImage, Topic
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.ids import RESERVED_UUIDS, TopicIdPartition, uuid_bytes
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.backup.manifests import WITHOUT_SET, Manifest
from tieredctl.ops.restore.placement import derived_id
from tieredctl.ops.restore.restored_cluster import is_internal
from tieredctl.ports.metadata_source import METADATA_TOPIC, OffsetRange

_LEVEL = 21
"""3.9-IV0, the greatest metadata.version that 3.9 has and all later releases read."""
_VERSIONS: Mapping[int, int] = {KraftRecordType.REGISTER_BROKER: 3, KraftRecordType.PARTITION: 1}
"""In which versions a cluster of that metadata.version writes its records; others have 0."""
_REPLICAS = 3
MOST_PARTITIONS = 100_000
"""The most partitions of a topic: a stray key with a larger number would have as many made."""
_KEEP_EVENTS = {"cleanup.policy": "delete", "retention.ms": "-1"}
KEEP_ALL = {
    "remote.storage.enable": "true",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
"""The settings of a restored topic: by none of the brokers' defaults do they delete what just came back."""
_END_OFFSET = 1
UNREAD = (
    "settings of topics: every topic keeps all it has (retention.ms=-1, retention.bytes=-1) until it is given its own",
    f"replication factors: each partition gets {_REPLICAS} replicas, or one on each broker where there are fewer",
    "settings of brokers and clients, quotas",
    "ACLs, users and their passwords, delegation tokens",
    "consumer groups and their offsets",
    "topics without an object in the store, and partitions above the last of a topic that has one",
    "where logs began and ended: records below the first segment or after the last one are lost, and not counted",
    "deletions that were under way: such topics and segments are back where all their objects are still there",
    "features: metadata.version begins at 3.9-IV0",
)
"""What no key says."""


@dataclass(frozen=True, slots=True)
class EmptyMetadata:
    """A metadata topic that has lost all its events: a `MetadataSource`."""

    cluster_id: str
    metadata_topic_id: str
    partition_count: int

    @classmethod
    def of(cls, cluster_id: str, partition_count: int) -> EmptyMetadata:
        """The topic with so many partitions, under an id that is the same on every machine."""
        return cls(cluster_id, derived_id(f"{cluster_id} {METADATA_TOPIC}"), partition_count)

    def describe(self) -> dict[str, object]:
        """Whose it is, and that it has nothing."""
        return {
            "clusterId": self.cluster_id,
            "metadataTopicId": self.metadata_topic_id,
            "topicPartitions": self.partition_count,
            "endOffsets": {str(number): 0 for number in self.metadata_partitions()},
        }

    def metadata_partitions(self) -> list[int]:
        """All."""
        return list(range(self.partition_count))

    def findings(self) -> list[Finding]:
        """None: that it is empty is known."""
        return []

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:  # noqa: ARG002
        """None."""
        return iter(())

    def offset_range(self, metadata_partition: int) -> OffsetRange:  # noqa: ARG002
        """Every partition begins again at 0."""
        return OffsetRange(0, 0)

    def advance(self) -> bool:
        """It never changes."""
        return False

    def close(self) -> None:
        """Nothing is open."""


def chosen_ids(partitions: Iterable[TopicIdPartition], chosen: Mapping[str, str]) -> dict[str, str]:
    """The id of each topic that keys name, by its name; `chosen` says which where a topic was recreated.

    Raises TieredctlError `ambiguous-topic` where several ids have a name and none is chosen, `unknown-topic` for a
    choice that no key has, `undecodable` where two names have one id, or one has an id that no topic can have."""
    ids: dict[str, set[str]] = defaultdict(set)
    for one in partitions:
        if not is_internal(one.topic):
            ids[one.topic].add(one.topic_id)
    for topic, topic_id in chosen.items():
        if topic_id not in ids[topic]:
            message = f"--use-topic-id: the store has no object of topic {topic} with id {topic_id}."
            hint = f"It has these ids: {', '.join(sorted(ids[topic]))}." if ids[topic] else "Check the name."
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=hint)
    found: dict[str, str] = {}
    for topic, some in sorted(ids.items()):
        if topic not in chosen and len(some) > 1:
            message = f"Topic {topic} was recreated: the store has objects of the topic ids {', '.join(sorted(some))}."
            hint = f"Give the last one with --use-topic-id {topic}=ID; the others' objects stay where they are."
            raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, message, hint=hint)
        found[topic] = chosen.get(topic) or next(iter(some))
    _demand_unreserved(found)
    _demand_distinct(found)
    return found


def _demand_unreserved(ids: Mapping[str, str]) -> None:
    for topic, topic_id in ids.items():
        if topic_id in RESERVED_UUIDS:
            message = f"By the store's keys, topic {topic} has the reserved id {topic_id}."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="Name the other topics with --topic.")


def _demand_distinct(ids: Mapping[str, str]) -> None:
    names: dict[str, str] = {}
    for topic, topic_id in ids.items():
        if topic_id in names:
            message = f"By the store's keys, topics {names[topic_id]} and {topic} have the same id {topic_id}."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="Restore one of them alone with --topic.")
        names[topic_id] = topic


def cluster_of_keys(
    partitions: Collection[TopicIdPartition],
    ids: Mapping[str, str],
    events: EmptyMetadata,
    brokers: Sequence[int],
    also: Collection[tuple[str, int]],
    as_of_ms: int,
) -> ClusterState:
    """The cluster with these topics, each with all partitions up to the last that a key names or that is among `also`,
    on brokers in turn. Raises TieredctlError `undecodable` for a partition number that no topic can have."""
    image = ClusterImage(features={METADATA_VERSION: _LEVEL}, end_offset=_END_OFFSET, as_of_ms=as_of_ms)
    counts = {METADATA_TOPIC: events.partition_count}
    for topic, number in [*((one.topic, one.partition) for one in partitions if _is_of(one, ids)), *also]:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    for place, (topic, count) in enumerate(sorted(counts.items())):
        if count > MOST_PARTITIONS:
            message = f"By a key or --begin-at, topic {topic} would have {count} partitions: that cannot be right."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="Name the other topics with --topic.")
        is_events = topic == METADATA_TOPIC
        topic_id = uuid_bytes(events.metadata_topic_id if is_events else ids[topic])
        numbers = {one: _partition(topic_id, one, _in_turn(brokers, place + one)) for one in range(count)}
        image.topics[topic_id] = Topic(topic, numbers)
        image.configs[TOPIC_RESOURCE, topic] = dict(_KEEP_EVENTS if is_events else KEEP_ALL)
    return ClusterState(image, 0, _VERSIONS)


def _is_of(partition: TopicIdPartition, ids: Mapping[str, str]) -> bool:
    return ids.get(partition.topic) == partition.topic_id


def _in_turn(brokers: Sequence[int], turn: int) -> list[int]:
    first = turn % len(brokers) if brokers else 0
    return [*brokers[first:], *brokers[:first]][:_REPLICAS]


def _partition(topic_id: bytes, number: int, replicas: Sequence[int]) -> dict[str, object]:
    return {
        "PartitionId": number,
        "TopicId": topic_id,
        "Replicas": replicas,
        "Isr": replicas,
        "RemovingReplicas": [],
        "AddingReplicas": [],
        "Leader": -1,
        "LeaderRecoveryState": 0,
        "LeaderEpoch": 0,
        "PartitionEpoch": 0,
        "Directories": [],
    }


def manifest_of_keys(events: EmptyMetadata, unexplained: int) -> Manifest:
    """What a set would say of such a cluster: nearly all is unread, and which topics so many objects are of whose keys
    the layout does not explain."""
    objects = [f"{counted(unexplained, 'object')} under keys that the layout does not explain"] if unexplained else []
    return Manifest(
        cluster_id=events.cluster_id,
        number=WITHOUT_SET,
        folder="",
        created_ms=0,
        previous=None,
        base=WITHOUT_SET,
        metadata_topic_id=events.metadata_topic_id,
        events={},
        metadata_log_end=_END_OFFSET,
        unread=(*UNREAD, *objects),
        left_out=(),
        files=(),
    )

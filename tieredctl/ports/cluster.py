"""What tieredctl asks a live cluster, apart from the records of its metadata topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from tieredctl.errors import ErrorCode, TieredctlError


class OffsetSpec(IntEnum):
    """The special timestamps of ListOffsets, by their names in Kafka's tools."""

    LATEST = -1
    """The high watermark: the offset after the last that consumers see."""
    EARLIEST = -2
    """The log start offset, whether in remote storage or not."""
    MAX_TIMESTAMP = -3
    """The offset of the record with the highest timestamp, among local segments (KIP-734)."""
    EARLIEST_LOCAL = -4
    """The first offset on the leader's disk (KIP-405)."""
    LATEST_TIERED = -5
    """The last offset in remote storage, inclusive (KIP-1005)."""
    EARLIEST_PENDING_UPLOAD = -6
    """The first offset that is not in remote storage yet (KIP-1023)."""


FIRST_VERSION_OF = {
    OffsetSpec.LATEST: 1,
    OffsetSpec.EARLIEST: 1,
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}
"""The ListOffsets version that brought each."""


class ListedOffset(NamedTuple):
    """A broker's answer to ListOffsets for a partition; times in ms since the epoch.

    `offset` is None where the broker has none, which is not an error: nothing is tiered yet, or everything is. `error`
    is the name of Kafka's error, if any.
    """

    offset: int | None
    timestamp_ms: int | None = None
    leader_epoch: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition as the cluster describes it; `leader` is None while it has none."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: Sequence[int]
    in_sync_replicas: Sequence[int]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the cluster describes it, with its partitions in order."""

    topic: str
    topic_id: str
    partitions: Sequence[PartitionDescription]


class ConfigValue(NamedTuple):
    """A setting, and Kafka's name of its source (DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG, …)."""

    value: str | None
    source: str


class BrokerFeatures(NamedTuple):
    """The greatest level of each feature that a broker supports, and the level finalized in the cluster."""

    supported: Mapping[str, int]
    finalized: Mapping[str, int]


class QuorumReplica(NamedTuple):
    """A replica of the metadata log, as the leader knows it: times in ms by the leader's clock; None is unknown."""

    node_id: int
    log_end_offset: int | None
    """Exclusive."""
    last_fetch_ms: int | None
    """When it last fetched."""
    last_caught_up_ms: int | None
    """When the leader's log ended where the replica's last fetch began: until then it lacked nothing (KIP-836)."""


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The metadata quorum by its leader's answer; `high_watermark` is exclusive. Observers are brokers, and controllers
    without a vote."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: Sequence[QuorumReplica]
    observers: Sequence[QuorumReplica]
    controllers: Mapping[int, str]
    """HOST:PORT of each controller's first listener; empty before Kafka 3.9, which does not report them (KIP-853)."""


class MetadataProgress(NamedTuple):
    """The end of a KRaft cluster's metadata log, by its controllers, and how far each broker has applied it.

    Both are offsets after the last record. None stands for unknown: `end` where the user may not ask, a broker's where
    it did not answer.
    """

    end: int | None
    applied: Mapping[int, int | None]


class Cluster(Protocol):
    """A live cluster. Every method may raise TieredctlError: `broker-unreachable`, `broker-refused` where the user may
    not ask this."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster id, if the cluster reports it."""
        ...

    def describe(self) -> dict[str, object]:
        """The `source` of a JSON document."""
        ...

    def topic(self, name: str) -> TopicDescription:
        """Raises TieredctlError `unknown-topic` where there is no topic of that name, or the user may not see it."""
        ...

    def topic_names(self) -> Sequence[str]:
        """All topics that the user may see, in order."""
        ...

    def topic_partitions(self) -> Mapping[str, Sequence[PartitionDescription]]:
        """The partitions of all topics that the user may see."""
        ...

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        """All settings of some topics; those that no longer exist are left out."""
        ...

    def broker_configs(self) -> Mapping[int, Mapping[str, ConfigValue]]:
        """All settings of each broker; the value of a secret, or of a setting unknown to Kafka, is None."""
        ...

    def broker_features(self) -> Mapping[int, BrokerFeatures]:
        """The features of each broker."""
        ...

    def quorum(self) -> QuorumDescription:
        """The metadata quorum. Raises TieredctlError `broker-refused` where there is none, with ZooKeeper, and
        `broker-unreachable` where it has no leader for longer than the request timeout."""
        ...

    def metadata_progress(self) -> MetadataProgress:
        """How far brokers have applied the cluster's metadata. Does not wait long for any of them."""
        ...

    def replica_bytes(self, names: Sequence[str]) -> Mapping[tuple[str, int], Mapping[int, int]]:
        """The bytes of each partition of some topics on each broker's disks."""
        ...

    def free_bytes(self, names: Sequence[str]) -> Mapping[int, int]:
        """By broker, the free bytes in the log directories that hold replicas of some topics. A broker that does not
        report this (before 3.3) is left out."""
        ...

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None], *, validate_only: bool) -> None:
        """Sets some of a topic's own settings, all of them or none; None removes the topic's own value. With
        `validate_only` the controller only validates them.

        Raises TieredctlError: `config-refused` with Kafka's reason, `unknown-topic`, `broker-refused`.
        """
        ...

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:
        """Each partition's answer from its leader: for an OffsetSpec, or for a time in ms the first offset of that time
        or later. A broker that is too old for it answers UNSUPPORTED_VERSION."""
        ...

    def epoch_end_offset(self, topic: TopicDescription, partition: int, leader_epoch: int) -> tuple[int, int] | None:
        """A leader's answer to OffsetForLeaderEpoch: the greatest epoch of its log that is not above `leader_epoch`,
        and that epoch's end offset (exclusive). Below its first epoch the answer is `leader_epoch` and the first
        offset; above its last, None."""
        ...


def settings_of(cluster: Cluster, topic: str) -> Mapping[str, ConfigValue]:
    """All settings of one topic. Raises TieredctlError as `Cluster.topic_configs` does, and `unknown-topic`."""
    settings = cluster.topic_configs([topic]).get(topic)
    if settings is None:
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"Topic {topic} no longer exists.", hint="")
    return settings


def leader_bytes(cluster: Cluster, topic: str, partition: PartitionDescription) -> int:
    """A partition's bytes on its leader's disk. Raises TieredctlError as `Cluster.replica_bytes` does, and
    `broker-unreachable` where the leader did not report them: that is not zero."""
    sizes = cluster.replica_bytes([topic]).get((topic, partition.partition), {})
    if partition.leader is None or partition.leader not in sizes:
        message = f"The leader of {topic}-{partition.partition} did not report how much is on its disk."
        raise TieredctlError(
            ErrorCode.BROKER_UNREACHABLE, message, hint="Run it again once the partition has a leader."
        )
    return sizes[partition.leader]


class CommittedOffset(NamedTuple):
    """The offset from which a consumer group will resume a partition."""

    group: str
    topic: str
    partition: int
    offset: int


class ConsumerGroups(Protocol):
    """The consumer groups of a live cluster. Raises TieredctlError as `Cluster` does."""

    def committed_offsets(self) -> Sequence[CommittedOffset]:
        """The committed offsets of every group that the user may see: brokers silently leave out the others, and topics
        that the user may not see."""
        ...

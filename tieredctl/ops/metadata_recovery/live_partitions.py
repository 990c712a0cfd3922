"""What a live cluster reports about the partitions whose segments a store has."""

from __future__ import annotations

from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.cluster.leader import only_partition, read_leader_log
from tieredctl.ops.cluster.release import release_of_metadata_version
from tieredctl.ports.cluster import Cluster, TopicDescription

_FIRST_TO_TELL_TXN = (4, 0)
_METADATA_VERSION = "metadata.version"


@dataclass(frozen=True, slots=True)
class LivePartition:
    """A partition as the cluster has it. No log means that the cluster has no such partition of this topic id."""

    log: LeaderLog | None
    topic_id: str | None = None
    """The id that the topic of this name has now; None if there is no such topic."""


@dataclass(slots=True)
class LivePartitions:
    """Asks a cluster, once per topic."""

    cluster: Cluster
    _topics: dict[str, TopicDescription | None] = field(default_factory=dict)

    def look(self, partition: TopicIdPartition) -> LivePartition:
        """Raises TieredctlError as the cluster does, and if the partition's leader does not answer."""
        topic = self._topic(partition.topic)
        if topic is None:
            return LivePartition(None)
        numbers = [one.partition for one in topic.partitions]
        if topic.topic_id != partition.topic_id or partition.partition not in numbers:
            return LivePartition(None, topic.topic_id)
        try:
            answers = read_leader_log(self.cluster, only_partition(topic, partition.partition))
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                raise
            # Deleted since it was described.
            self._topics[partition.topic] = None
            return LivePartition(None)
        return LivePartition(answers.log, topic.topic_id)

    def tell_txn(self) -> bool:
        """Whether all brokers record that a segment has no aborted transaction."""
        levels = [one.supported.get(_METADATA_VERSION, 0) for one in self.cluster.broker_features().values()]
        oldest = min(levels, default=0)
        release = release_of_metadata_version(oldest)  # None for a level newer than all known ones
        return oldest > 0 if release is None else release.line >= _FIRST_TO_TELL_TXN

    def _topic(self, name: str) -> TopicDescription | None:
        if name not in self._topics:
            try:
                self._topics[name] = self.cluster.topic(name)
            except TieredctlError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC:
                    raise
                self._topics[name] = None
        return self._topics[name]

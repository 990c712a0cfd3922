"""A cluster that no broker answers for, by its metadata log: what that does not have is refused, and stays unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import BROKER_RESOURCE, TOPIC_RESOURCE
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_text
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.cluster.topic_settings import INHERITED
from tieredctl.ports.cluster import (
    BrokerFeatures,
    ConfigValue,
    ListedOffset,
    MetadataProgress,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
)
from tieredctl.process.redaction import is_secret

_OWN, _DEFAULT, _UNKNOWN = "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "UNKNOWN"
_NO_BROKER = "BROKER_NOT_AVAILABLE"


@dataclass(frozen=True, slots=True)
class ImageCluster:
    """A `Cluster` as of the end of a metadata log, for reading only.

    Offsets, bytes on disks and brokers' settings are in no metadata record.
    """

    offline: OfflineCluster

    @property
    def cluster_id(self) -> str | None:
        return self.offline.cluster_id

    def describe(self) -> dict[str, object]:
        return self.offline.describe()

    def findings(self) -> Sequence[Finding]:
        """What makes its answers incomplete."""
        return list(self.offline.findings())

    def topic(self, name: str) -> TopicDescription:
        image = self.offline.image
        found = image.topics_named(name)
        if not found and not self.offline.has_all_topics:
            message = f"It is unknown whether there is a topic {name}: {self.offline.path} does not say for certain."
            raise TieredctlError(ErrorCode.TOPIC_UNCLEAR, message, hint="Give --bootstrap-server once brokers are up.")
        if not found:
            message = f"There is no topic {name} in {self.offline.path}."
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=nearest_hint(name, self.topic_names()) or "")
        return TopicDescription(name, uuid_text(found[-1]), self._partitions(found[-1]))

    def topic_partitions(self) -> Mapping[str, Sequence[PartitionDescription]]:
        named = self.offline.image.topics_named
        return {name: self._partitions(named(name)[-1]) for name in self.topic_names()}

    def _partitions(self, topic_id: bytes) -> Sequence[PartitionDescription]:
        return tuple(_partition(one) for _, one in sorted(self.offline.image.topics[topic_id].partitions.items()))

    def topic_names(self) -> Sequence[str]:
        return sorted(topic.name for topic in self.offline.image.topics.values())

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        """The topics' own settings, and what of others the cluster's own defaults decide. The rest is in brokers'
        files, and has no value."""
        known, configs, inherited = set(self.topic_names()), self.offline.image.configs, self._inherited()
        return {
            name: inherited
            | {
                setting: ConfigValue(None if is_secret(setting) else value, _OWN)
                for setting, value in configs.get((TOPIC_RESOURCE, name), {}).items()
            }
            for name in names
            if name in known
        }

    def _inherited(self) -> dict[str, ConfigValue]:
        """By topic setting. The default of all brokers precedes their files, and each broker's own precedes that."""
        configs = self.offline.image.configs
        default = configs.get((BROKER_RESOURCE, ""), {})
        own = {name for (kind, node), of in configs.items() if kind == BROKER_RESOURCE and node for name in of}
        return {
            setting: ConfigValue(default[name], _DEFAULT)
            if name in default and name not in own
            else ConfigValue(None, _UNKNOWN)
            for setting, name in INHERITED.items()
        }

    def broker_configs(self) -> Mapping[int, Mapping[str, ConfigValue]]:
        self._refuse("Brokers' settings")

    def broker_features(self) -> Mapping[int, BrokerFeatures]:
        finalized = dict(self.offline.image.features)
        return {node: BrokerFeatures(_supported(one), finalized) for node, one in self.offline.image.brokers.items()}

    def quorum(self) -> QuorumDescription:
        self._refuse("The quorum's leader and its nodes' progress")

    def metadata_progress(self) -> MetadataProgress:
        return MetadataProgress(self.offline.image.end_offset, dict.fromkeys(self.offline.image.brokers))

    def replica_bytes(self, names: Sequence[str]) -> Mapping[tuple[str, int], Mapping[int, int]]:  # noqa: ARG002
        self._refuse("Bytes on brokers' disks")

    def free_bytes(self, names: Sequence[str]) -> Mapping[int, int]:  # noqa: ARG002
        self._refuse("Free bytes on brokers' disks")

    def alter_topic_configs(
        self,
        name: str,
        changes: Mapping[str, str | None],  # noqa: ARG002
        *,
        validate_only: bool,  # noqa: ARG002
    ) -> None:
        self._refuse(f"Settings of topic {name}")

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:  # noqa: ARG002
        """No partition's leader answers."""
        return {one.partition: ListedOffset(None, error=_NO_BROKER) for one in topic.partitions}

    def epoch_end_offset(self, topic: TopicDescription, partition: int, leader_epoch: int) -> tuple[int, int] | None:
        self._refuse(f"Offsets of {topic.topic}-{partition}, epoch {leader_epoch},")

    def _refuse(self, what: str) -> NoReturn:
        message = f"{what} are not in {self.offline.path}, and no broker is asked."
        raise TieredctlError(ErrorCode.BROKER_REFUSED, message, hint="Give --bootstrap-server once brokers are up.")


def _partition(values: Values) -> PartitionDescription:
    leader = values["Leader"]
    return PartitionDescription(
        values["PartitionId"],
        None if leader < 0 else leader,
        values["LeaderEpoch"],
        tuple(values["Replicas"]),
        tuple(values["Isr"]),
    )


def _supported(broker: Values) -> dict[str, int]:
    return {feature["Name"]: feature["MaxSupportedVersion"] for feature in broker["Features"]}

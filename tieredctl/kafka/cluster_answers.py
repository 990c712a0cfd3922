"""What kafka-python's answers to a `LiveCluster` say, in the values of `ports.cluster`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tieredctl.kafka.server_connection import server_name
from tieredctl.ports.cluster import (
    BrokerFeatures,
    ConfigValue,
    ListedOffset,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
)

_NONE = -1
_CONFIG_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
"""The sources of settings by number: DescribeConfigsResponse.ConfigSource."""


def partitions_of(topic: Any) -> tuple[PartitionDescription, ...]:
    """The partitions in a topic's metadata, by number."""
    return tuple(map(_partition, sorted(topic.partitions, key=lambda one: int(one.partition_index))))


def _partition(answer: Any) -> PartitionDescription:
    leader = None if answer.leader_id == _NONE else answer.leader_id
    epoch, replicas, in_sync = answer.leader_epoch, tuple(answer.replica_nodes), tuple(answer.isr_nodes)
    return PartitionDescription(answer.partition_index, leader, epoch, replicas, in_sync)


def settings_in(resource: Any) -> Mapping[str, ConfigValue]:
    """The settings of a described resource."""
    return {
        config.name: ConfigValue(config.value, _CONFIG_SOURCES.get(config.config_source, "UNKNOWN"))
        for config in resource.configs
    }


def features_in(response: Any) -> BrokerFeatures:
    """What a broker supports, and what the cluster has finalized."""
    supported = {feature.name: feature.max_version for feature in response.supported_features}
    return BrokerFeatures(supported, {one.name: one.max_version_level for one in response.finalized_features})


def listed_offset(answer: Any) -> ListedOffset:
    """What a leader says without an error."""
    if answer.offset == _NONE:
        return ListedOffset(None)
    timestamp_ms = None if answer.timestamp == _NONE else answer.timestamp
    return ListedOffset(answer.offset, timestamp_ms, None if answer.leader_epoch == _NONE else answer.leader_epoch)


def quorum_description(part: Any, nodes: Any) -> QuorumDescription:
    """The metadata quorum, of which `nodes` has the controllers' addresses; None from releases without them."""
    return QuorumDescription(
        part.leader_id,
        part.leader_epoch,
        part.high_watermark,
        voters=sorted(map(_quorum_replica, part.current_voters)),
        observers=sorted(map(_quorum_replica, part.observers)),
        controllers={
            node.node_id: server_name(node.listeners[0].host, node.listeners[0].port)
            for node in nodes or ()
            if node.listeners
        },
    )


def _quorum_replica(replica: Any) -> QuorumReplica:
    progress = (replica.log_end_offset, replica.last_fetch_timestamp, replica.last_caught_up_timestamp)
    return QuorumReplica(replica.replica_id, *(None if one == _NONE else one for one in progress))

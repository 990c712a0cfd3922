"""The cluster's own metadata as new nodes begin with it: the same topics, ids and settings, on the given nodes.

Brokers register again when they start, and leaders are elected then. With eligible leader replicas (KIP-966), a broker
whose last epoch is not the registered one has lost its place in the ISR: so both are written, here and in the broker's
`.kafka_cleanshutdown` (ClusterControlManager.registerBroker).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import TOPIC_RESOURCE, ClusterImage, Topic
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.restore.placement import Placement
from tieredctl.ops.restore.restored_logs import RestoredLog
from tieredctl.ops.tiering.enable import NEVER_TIERED

_NO_LEADER = -1
_EPOCHS_AHEAD = 100
"""Leaders may have changed after the backup was made, and a client that outlived them takes no leader with an earlier
epoch than the last that it knew of the same topic id."""


def is_internal(topic: str) -> bool:
    """Whether a topic is one that Kafka makes for itself and never tiers; many tools begin theirs with `__`, too."""
    return topic in NEVER_TIERED


def partitions_of(image: ClusterImage) -> Iterator[TopicIdPartition]:
    """All partitions of all topics."""
    for topic_id, topic in image.topics.items():
        for number in sorted(topic.partitions):
            yield TopicIdPartition(uuid_text(topic_id), topic.name, number)


def cut_to_topics(image: ClusterImage, names: Sequence[str]) -> ClusterImage:
    """The cluster with some topics, and Kafka's own; with all where none is named. Raises TieredctlError
    `unknown-topic`."""
    if not names:
        return image
    here = {topic.name for topic in image.topics.values()}
    for name in names:
        if name not in here:
            alike = nearest_hint(name, sorted(here))
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"The backup set has no topic {name}.", hint=alike or "")
    topics = {key: one for key, one in image.topics.items() if one.name in names or is_internal(one.name)}
    kept = {topic.name for topic in topics.values()}
    configs = {key: one for key, one in image.configs.items() if key[0] != TOPIC_RESOURCE or key[1] in kept}
    return replace(image, topics=topics, configs=configs)


def restored_state(
    state: ClusterState, logs: Mapping[TopicIdPartition, RestoredLog], placement: Placement
) -> ClusterState:
    """The cluster's metadata for new nodes."""
    image = state.image
    topics: dict[bytes, Topic] = {}
    for topic_id, topic in image.topics.items():
        partitions = {
            number: _restored(values, logs[TopicIdPartition(uuid_text(topic_id), topic.name, number)], placement)
            for number, values in topic.partitions.items()
        }
        topics[topic_id] = Topic(topic.name, partitions)
    voters = None
    if image.voters is not None:
        voters = {node_id: one for node_id, one in image.voters.items() if node_id in placement.directories}
    brokers = {one: _registration(image, one, placement) for one in placement.brokers}
    restored = replace(image, topics=topics, brokers=brokers, controllers={}, voters=voters)
    return ClusterState(restored, state.epoch, state.versions)


def _registration(image: ClusterImage, broker_id: int, placement: Placement) -> Values:
    """A broker that is down, in good order."""
    registration = image.brokers.get(broker_id)
    directories = list(map(uuid_bytes, placement.directories[broker_id]))
    if registration is None:
        registration = {
            "BrokerId": broker_id,
            "IsMigratingZkBroker": False,
            "IncarnationId": directories[0],
            "BrokerEpoch": max(image.end_offset - 1, 0),
            "EndPoints": [],
            "Features": [],
            "Rack": None,
        }
    changed = {"Fenced": True, "InControlledShutdown": False, "LogDirs": directories, "CordonedLogDirs": None}
    return {**registration, **changed}


def _restored(values: Values, log: RestoredLog, placement: Placement) -> Values:
    topic, number = log.partition.topic, log.partition.partition
    staying = [one for one in values["Replicas"] if one not in values["RemovingReplicas"]]
    replicas = placement.replicas(staying, number)
    latest = max((entry.epoch for entry in log.leader_epochs), default=0)
    return {
        **values,
        "Replicas": replicas,
        "Isr": replicas,
        "RemovingReplicas": [],
        "AddingReplicas": [],
        "Leader": _NO_LEADER,
        "LeaderRecoveryState": 0,
        "LeaderEpoch": max(values["LeaderEpoch"], latest) + _EPOCHS_AHEAD,
        "PartitionEpoch": values["PartitionEpoch"] + _EPOCHS_AHEAD,
        "Directories": [uuid_bytes(placement.directory(one, topic, number, values)) for one in replicas],
        "EligibleLeaderReplicas": [],
        "LastKnownElr": [],
    }

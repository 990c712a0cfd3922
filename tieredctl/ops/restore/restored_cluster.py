"""The cluster's own metadata as new nodes begin with it: the same topics, ids and settings, on the given nodes.

Brokers register again when they start, and leaders are elected then. With eligible leader replicas (KIP-966), a broker
whose last epoch is not the registered one has lost its place in the ISR: so both are written, here and in the broker's
`.kafka_cleanshutdown` (ClusterControlManager.registerBroker).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.wire import Values
from tieredctl.kraft.image import MIGRATING_DIRECTORY, TOPIC_RESOURCE, ClusterImage, Topic
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.restore.restored_logs import RestoredLog
from tieredctl.ops.tiering.enable import NEVER_TIERED

_NO_LEADER = -1
_EPOCHS_AHEAD = 100
"""Leaders may have changed after the backup was made, and a client that outlived them takes no leader with an earlier
epoch than the last that it knew of the same topic id."""


class NewNode(NamedTuple):
    """A node to restore; `folder` is None for one on another machine, where the same command is run."""

    node_id: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Which nodes there are, and what their directories are called."""

    directories: Mapping[int, str]
    """The directory id of each node."""
    brokers: Sequence[int]

    @classmethod
    def of(cls, nodes: Sequence[NewNode], image: ClusterImage, seed: str) -> Placement:
        """The same on every machine: ids that the cluster knew are kept, others follow from `seed`. Raises
        TieredctlError `usage` without a broker, and where none of the voters in the metadata log is among the nodes."""
        ids = sorted(node.node_id for node in nodes)
        brokers = [one for one in ids if one in image.brokers or one not in image.controllers]
        if not brokers:
            raise TieredctlError(ErrorCode.USAGE, "None of the nodes is a broker.", hint="Give each with --node.")
        if image.kraft_version and not set(image.voters or ()) & set(ids):
            known = ", ".join(map(str, sorted(image.voters or ())))
            raise TieredctlError(ErrorCode.USAGE, f"None of the nodes is a voter: {known} are.", hint="Keep their ids.")
        return cls({one: _directory_id(one, image, seed) for one in ids}, brokers)

    def replicas(self, wanted: Sequence[int], number: int) -> list[int]:
        """The replicas of a partition: those that it had, and others in the place of nodes that are no more."""
        kept = [one for one in wanted if one in self.brokers]
        others = [one for one in self.brokers if one not in kept]
        turn = number % len(others) if others else 0
        lacking = min(len(wanted), len(self.brokers)) - len(kept)
        return [*kept, *(others[turn:] + others[:turn])[:lacking]]


def _directory_id(node_id: int, image: ClusterImage, seed: str) -> str:
    voter = (image.voters or {}).get(node_id)
    if voter is not None and voter["VoterDirectoryId"] != MIGRATING_DIRECTORY:
        return uuid_text(voter["VoterDirectoryId"])
    registered = image.brokers.get(node_id, {}).get("LogDirs") or []
    if len(registered) == 1:
        return uuid_text(registered[0])
    return derived_id(f"{seed} {node_id}")


def derived_id(seed: str) -> str:
    """An id that is the same wherever it is made of the same seed, and that no option's name looks like."""
    texts = (uuid_text(sha256(f"{seed} {number}".encode()).digest()[:16]) for number in range(1000))
    return next(text for text in texts if not text.startswith("-"))


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
    known = {topic.name for topic in image.topics.values()}
    for name in names:
        if name not in known:
            alike = nearest_hint(name, sorted(known))
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
            number: _restored(
                values, number, logs[TopicIdPartition(uuid_text(topic_id), topic.name, number)], placement
            )
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
    known = image.brokers.get(broker_id)
    directory = uuid_bytes(placement.directories[broker_id])
    if known is None:
        known = {
            "BrokerId": broker_id,
            "IsMigratingZkBroker": False,
            "IncarnationId": directory,
            "BrokerEpoch": max(image.end_offset - 1, 0),
            "EndPoints": [],
            "Features": [],
            "Rack": None,
        }
    changed = {"Fenced": True, "InControlledShutdown": False, "LogDirs": [directory], "CordonedLogDirs": None}
    return {**known, **changed}


def _restored(values: Values, number: int, log: RestoredLog, placement: Placement) -> Values:
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
        "Directories": [uuid_bytes(placement.directories[one]) for one in replicas],
        "EligibleLeaderReplicas": [],
        "LastKnownElr": [],
    }

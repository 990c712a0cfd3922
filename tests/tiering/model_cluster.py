"""A cluster in memory with one topic: what `topic enable` and `topic disable` ask, and Kafka's rules for what they set.

LogConfig.validate has the rules. The process may end at every request: before the cluster hears it, or before it is
answered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import DELETED, DELETING, TOPIC_ID, copied, updated
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import (
    BrokerFeatures,
    ConfigValue,
    ListedOffset,
    MetadataProgress,
    OffsetSpec,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    TopicDescription,
)
from tieredctl.ports.metadata_source import METADATA_TOPIC

TOPIC = "t"
CLUSTER_ID = "rTFWgbQKRvehFNx-PhMpIg"
HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000
LEVEL_3_8, LEVEL_3_9, LEVEL_4_3 = 20, 21, 30
"""Of the feature metadata.version."""
_LEVEL_4_2 = 29
"""The first release that knows EARLIEST_PENDING_UPLOAD."""
SEGMENT_BYTES = 100 << 20
LATEST = 1_000
METADATA_TOPIC_ID = "zXsqEEMnQWWg1Y7BM4vDkw"
DEFAULTS = {
    "remote.storage.enable": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "retention.ms": str(240 * HOUR_MS),
    "retention.bytes": "-1",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "segment.ms": str(24 * HOUR_MS),
    "segment.bytes": str(SEGMENT_BYTES),
    "cleanup.policy": "delete",
}
BROKER = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.example.Storage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.copy.max.bytes.per.second": "1000000",
    "remote.log.manager.fetch.max.bytes.per.second": "1000000",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
}
METADATA_SETTINGS = {
    "retention.ms": "-1",
    "min.insync.replicas": "2",
    "cleanup.policy": "delete",
    "retention.bytes": "-1",
}
_KIP_950 = ("remote.log.copy.disable", "remote.log.delete.on.disable")
"""Not known before 3.9."""
_SECRET = "ssl.keystore.password"
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_REPLICAS = (1, 2, 3)


class Died(BaseException):
    """The process is no more."""


@dataclass
class ModelCluster:
    """Three brokers; the topic has one partition, of 1,000 offsets, led by broker 1."""

    own: dict[str, str] = field(default_factory=dict)
    """The topic's own settings."""
    remote_segments: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By number, the first and the last offset of each, of 1,000 bytes."""
    topic_id: str = TOPIC_ID
    level: int = LEVEL_4_3
    leader: int | None = 1
    earliest_local: int | None = 0
    """None where the leader does not tell."""
    unanswered: str | None = None
    """The error of every question for an offset."""
    latest_tiered: int | None = None
    size: int = 10 * SEGMENT_BYTES
    reporting: Sequence[int] = _REPLICAS
    """The brokers that report what is on their disks."""
    answering: Sequence[int] = _REPLICAS
    """The brokers that report their settings and features."""
    free: Mapping[int, int] = field(default_factory=lambda: dict.fromkeys(_REPLICAS, 1 << 50))
    broker: dict[str, str] = field(default_factory=lambda: dict(BROKER))
    metadata_replicas: int = 3
    metadata_leader: int | None = 1
    denied: Collection[str] = ()
    """The questions that the user may not ask, by their methods."""
    voters: Sequence[int] = _REPLICAS
    first_young_offset: int | None = 500
    """What a look-up by time gives."""
    looks_until_tiered: int = 2
    copied_once: int | None = None
    """The last offset that was in remote storage before the topic was taken out."""
    dies_at: int | None = None
    gone_at: int | None = None
    """The question from which on the topic is no more."""
    boundaries: int = 0
    deletes: bool = True
    """Whether the leader does delete remote segments."""
    alterations: list[Mapping[str, str | None]] = field(default_factory=list)
    events: list[MetadataEvent] = field(default_factory=list)
    source_findings: Sequence[Finding] = ()
    """What is odd about its metadata."""

    def __post_init__(self) -> None:
        for number, (start, end) in self.remote_segments.items():
            self.events += copied(number, start, end)

    cluster_id: str | None = CLUSTER_ID

    def describe(self) -> dict[str, object]:
        return {"kind": "cluster", "bootstrapServer": "model:9092", "clusterId": self.cluster_id}

    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True

    def source(self) -> ModelMetadata:
        """Its metadata."""
        self.boundary()
        self._demand_right("source")
        return ModelMetadata(self.events, self)

    def topic(self, name: str) -> TopicDescription:
        self.boundary()
        if name == METADATA_TOPIC:
            replicas = _REPLICAS[: self.metadata_replicas]
            partition = PartitionDescription(0, self.metadata_leader, 0, replicas, replicas)
            return TopicDescription(name, METADATA_TOPIC_ID, [partition])
        if _TOPIC_NAME.fullmatch(name) is None:
            raise TieredctlError(ErrorCode.USAGE, f"{name!r} is not a valid topic name.", hint="")
        self._demand_known(name)
        return TopicDescription(name, self.topic_id, [PartitionDescription(0, self.leader, 0, _REPLICAS, _REPLICAS)])

    def topic_partitions(self) -> Mapping[str, Sequence[PartitionDescription]]:
        return {name: [PartitionDescription(0, self.leader, 0, _REPLICAS, _REPLICAS)] for name in self.topic_names()}

    def topic_names(self) -> Sequence[str]:
        return [METADATA_TOPIC, TOPIC]

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        self.boundary()
        every = {METADATA_TOPIC: _as_own(METADATA_SETTINGS), TOPIC: self._settings()}
        return {name: every[name] for name in names if name in every}

    def broker_configs(self) -> Mapping[int, Mapping[str, ConfigValue]]:
        self.boundary()
        self._demand_right("broker_configs")
        told: dict[str, str | None] = {**self.broker, _SECRET: None}
        return {
            node: {name: ConfigValue(to, "STATIC_BROKER_CONFIG") for name, to in told.items()}
            for node in self.answering
        }

    def broker_features(self) -> Mapping[int, BrokerFeatures]:
        self.boundary()
        level = {"metadata.version": self.level}
        return dict.fromkeys(self.answering, BrokerFeatures(level, level))

    def metadata_progress(self) -> MetadataProgress:
        return MetadataProgress(100, dict.fromkeys(_REPLICAS, 100))

    def quorum(self) -> QuorumDescription:
        self._demand_right("quorum")
        voters = [QuorumReplica(node, 100, None, None) for node in self.voters]
        return QuorumDescription(1, 1, 100, voters, [], {})

    def replica_bytes(self, names: Sequence[str]) -> Mapping[tuple[str, int], Mapping[int, int]]:
        self.boundary()
        self._demand_right("replica_bytes")
        return {(name, 0): dict.fromkeys(self.reporting, self.size) for name in names if name in self.topic_names()}

    def free_bytes(self, names: Sequence[str]) -> Mapping[int, int]:
        self._demand_right("free_bytes")
        return self.free if TOPIC in names else {}

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:
        self.boundary()
        self._demand_known(topic.topic)
        if self.unanswered is not None:
            return {0: ListedOffset(None, error=self.unanswered)}
        if timestamp == OffsetSpec.LATEST_TIERED:
            return {0: self._latest_tiered()}
        if timestamp == OffsetSpec.EARLIEST_PENDING_UPLOAD:
            return {0: self._earliest_pending_upload()}
        if timestamp == OffsetSpec.MAX_TIMESTAMP:
            return {0: ListedOffset(LATEST - 1, NOW_MS)}
        earliest = min((start for start, _ in self.remote_segments.values()), default=self.earliest_local)
        offsets: dict[int, int | None] = {
            OffsetSpec.EARLIEST_LOCAL: self.earliest_local,
            OffsetSpec.EARLIEST: earliest,
            OffsetSpec.LATEST: LATEST,
            0: earliest,
        }
        return {0: ListedOffset(None if timestamp > NOW_MS else offsets.get(timestamp, self.first_young_offset))}

    def epoch_end_offset(self, topic: TopicDescription, partition: int, leader_epoch: int) -> tuple[int, int] | None:
        """All records are of epoch 0."""
        self.boundary()
        self._demand_known(topic.topic)
        return None if leader_epoch > 0 else (0, LATEST)

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None], *, validate_only: bool) -> None:
        self.boundary()
        self._demand_known(name)
        before = dict(self.own)
        after = {key: to for key, to in {**self.own, **changes}.items() if to is not None}
        self._demand_valid(before, {**DEFAULTS, **after})
        if not validate_only:
            self.alterations.append(dict(changes))
            self.own = after
            if before.get("remote.storage.enable") == "true" != after.get("remote.storage.enable"):
                self._disabled()
        self.boundary()

    def _demand_known(self, name: str) -> None:
        if name != TOPIC or (self.gone_at is not None and self.boundaries >= self.gone_at):
            raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"model:9092 has no topic {name}.", hint="")

    def _demand_right(self, question: str) -> None:
        if question in self.denied:
            hint = "The user needs the operation Describe on the cluster."
            raise TieredctlError(ErrorCode.BROKER_REFUSED, "The user may not look at the cluster.", hint=hint)

    def boundary(self) -> None:
        """A question. Raises ValueError where the cluster was closed."""
        if self.is_closed:
            raise ValueError("It is closed.")
        self.boundaries += 1
        if self.boundaries == self.dies_at:
            raise Died

    def _settings(self) -> Mapping[str, ConfigValue]:
        defaults = {name: ConfigValue(to, "DEFAULT_CONFIG") for name, to in self._defaults().items()}
        return {**defaults, **_as_own(self.own)}

    def _defaults(self) -> dict[str, str]:
        return {name: to for name, to in DEFAULTS.items() if self.level >= LEVEL_3_9 or name not in _KIP_950}

    def _earliest_pending_upload(self) -> ListedOffset:
        if self.level < _LEVEL_4_2:
            return ListedOffset(None, error="UNSUPPORTED_VERSION")
        if self.own.get("remote.storage.enable") != "true":
            return ListedOffset(None)
        tiered = self.latest_tiered
        return ListedOffset(self.earliest_local if tiered is None else tiered + 1)

    def _latest_tiered(self) -> ListedOffset:
        if self.level < LEVEL_3_9:
            return ListedOffset(None, error="UNSUPPORTED_VERSION")
        if self.own.get("remote.storage.enable") != "true":
            return ListedOffset(self.latest_tiered)
        if self.latest_tiered is None:
            self.looks_until_tiered -= 1
            if self.looks_until_tiered == 0:
                self.latest_tiered = 99 if self.copied_once is None else self.copied_once + 100
        return ListedOffset(self.copied_once if self.latest_tiered is None else self.latest_tiered)

    def _demand_valid(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        reason = None
        unknown = after.keys() - DEFAULTS.keys()
        if unknown:
            reason = f"Unknown topic config name: {min(unknown)}"
        elif wrong := [name for name in after if _is_number(DEFAULTS[name]) and not _is_number(after[name])]:
            reason = f"Invalid value {after[wrong[0]]} for configuration {wrong[0]}: Not a number"
        elif after["remote.storage.enable"] != "true":
            was_on, deletes = before.get("remote.storage.enable") == "true", after["remote.log.delete.on.disable"]
            if was_on and deletes != "true":
                reason = "It is invalid to disable remote storage without deleting remote data."
        elif "compact" in after["cleanup.policy"]:
            reason = "Remote log storage is unsupported for the compacted topics"
        elif after["remote.log.copy.disable"] == "true" and after["local.retention.ms"] not in (
            "-2",
            after["retention.ms"],
        ):
            reason = "the `local.retention.ms` and `retention.ms` must be set to the identical value"
        if reason:
            raise TieredctlError(ErrorCode.CONFIG_REFUSED, f"Kafka refuses these settings of topic {TOPIC}: {reason}")

    def _disabled(self) -> None:
        """What a leader does then (ConfigHandler, RemoteLogManager.stopPartitions). What it copied once it never copies
        again, and tells as tiered once the topic is (UnifiedLog.highestOffsetInRemoteStorage)."""
        self.latest_tiered = None
        self.copied_once = max((last for _, last in self.remote_segments.values()), default=None)
        self.events += [updated(number, DELETING) for number in self.remote_segments]
        if self.deletes:
            self.events += [updated(number, DELETED) for number in self.remote_segments]


def _as_own(settings: Mapping[str, str]) -> dict[str, ConfigValue]:
    return {name: ConfigValue(to, "DYNAMIC_TOPIC_CONFIG") for name, to in settings.items()}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+", text) is not None


@dataclass
class ModelMetadata(EventsInMemory):
    """The cluster's metadata, and what is odd about it."""

    cluster: ModelCluster

    def findings(self) -> list[Finding]:
        return list(self.cluster.source_findings)

    def advance(self) -> bool:
        self.cluster.boundary()
        self.cluster._demand_right("source")
        return super().advance()

"""The facts about a live cluster that the rules judge: gathered once, and never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tieredctl.kafka.cluster import TopicDescription
from tieredctl.kafka.group_offsets import CommittedOffset
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_replica import LocalReplica
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.rlmm.cache import KnownSegment


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition of a tiered topic. Offsets as the leader told them, each before the next; None where it has none.

    `local_bytes` are the leader's. `segments` are those that the metadata knew afterwards; `displaced` the ids of
    finished ones that no look-up reaches any more.
    """

    partition: TopicIdPartition
    earliest: int | None = None
    earliest_local: int | None = None
    latest_tiered: int | None = None
    latest: int | None = None
    local_bytes: int | None = None
    first_young: int | None = None
    """The first offset that is younger than the topic's copy lag; as `latest` where none is. None where the topic has
    no such lag, or its leader does not tell."""
    segments: Sequence[KnownSegment] = ()
    displaced: frozenset[str] = frozenset()

    @property
    def finished(self) -> list[RemoteLogSegmentMetadata]:
        """Segments in COPY_SEGMENT_FINISHED."""
        return self.in_state(RemoteLogSegmentState.COPY_SEGMENT_FINISHED)

    def in_state(self, state: RemoteLogSegmentState) -> list[RemoteLogSegmentMetadata]:
        return [known.metadata for known in self.segments if known.metadata.state is state]

    @property
    def on_disk_too(self) -> list[RemoteLogSegmentMetadata]:
        """Finished segments that the leader's disk has from their first offset on."""
        if self.earliest_local is None:
            return []
        return [segment for segment in self.finished if segment.start_offset >= self.earliest_local]

    @property
    def tiered_end(self) -> int | None:
        """The highest offset in remote storage (inclusive) by the leader and by the metadata."""
        ends = [segment.end_offset for segment in self.finished]
        return max([*ends, *([] if self.latest_tiered is None else [self.latest_tiered])], default=None)


@dataclass(frozen=True, slots=True)
class MetadataTopicFacts:
    """`__remote_log_metadata` as the cluster describes it; `settings` are empty where they may not be seen."""

    description: TopicDescription
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplayFacts:
    """What the metadata topic costs; `seconds` is an estimate of a broker's replay of all of it."""

    events: int
    dead_ratio: float
    seconds: float
    unkeyed: int | None = None
    """Records without a key; None where that is not known."""


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """What looking at small objects of the remote store gave; None where something could not be looked at.

    How many were asked for by key for new followers' sake, how many transaction indexes were read, how many were too
    long for that, and what is wrong with them.
    """

    auxiliary: int | None = None
    indexes_read: int | None = None
    indexes_passed_over: int | None = None
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """A cluster. `release` is the oldest of its brokers', or as the user says; None where neither tells."""

    clock: Clock
    release: Release | None = None
    broker_releases: Mapping[int, Release | None] = field(default_factory=dict)
    remote_log_metadata_version: int | None = None
    """The finalized level of the feature remote.log.metadata.version (KIP-1266), which no release has yet."""
    finalized_release: Release | None = None
    """The line whose metadata version the cluster has agreed upon."""
    brokers: Mapping[int, BrokerSettings] = field(default_factory=dict)
    controllers_apart: Sequence[int] = ()
    """Controllers that are no brokers, so that no broker tells their settings."""
    has_metadata_topic: bool = True
    metadata_topic: MetadataTopicFacts | None = None
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)
    """The tiered ones."""
    partitions: Sequence[PartitionFacts] = ()
    """Those of the tiered topics."""
    unfinished: Sequence[KnownSegment] = ()
    """Copies and deletions that began and did not end, those of topics that are gone among them."""
    replay: ReplayFacts | None = None
    group_offsets: Sequence[CommittedOffset] = ()
    """What consumer groups have committed, of all topics."""
    replicas: Sequence[LocalReplica] | None = None
    """What the log directories hold that were given, of all topics; None where none was."""
    objects: ObjectFacts | None = None
    odd: Sequence[Finding] = ()
    """What was odd while the metadata was read."""
    not_looked_at: Sequence[Finding] = ()

"""The facts about a live cluster that the rules judge: gathered once, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalReplica
from tieredctl.model.local_metadata_log import SeenMetadataLog
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ports.cluster import CommittedOffset, QuorumDescription, TopicDescription
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.failed_copies import FailingCopy
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


@dataclass(frozen=True)
class PartitionFacts:
    """A partition of a tiered topic. Offsets as the leader reported them, each before the next; None where it has none.

    `local_bytes` are the leader's. `segments` are those that the metadata had afterwards; `displaced` has the ids of
    finished ones that look-ups no longer reach.
    """

    partition: TopicIdPartition
    leader: int | None = None
    """None where it has none, or nobody asked."""
    earliest: int | None = None
    earliest_local: int | None = None
    latest_tiered: int | None = None
    latest: int | None = None
    local_bytes: int | None = None
    first_young: int | None = None
    """The first offset that is younger than the topic's copy lag; `latest` where none is. None where the topic has no
    such lag, or its leader does not report it."""
    segments: Sequence[KnownSegment] = ()
    displaced: frozenset[str] = frozenset()
    has_events: bool | None = None
    """Whether the metadata has any event of it, of segments that are gone too; None where it was not read."""
    first_record_ms: int | None = None
    """When the first record that is left was made; None where nobody asked, or it has no time."""

    @property
    def is_start_unexplained(self) -> bool:
        """Whether its log begins above 0, and the metadata has no event of it: either nothing of it was ever copied, or
        its events are lost."""
        return self.has_events is False and bool(self.earliest)

    @cached_property
    def finished(self) -> list[RemoteLogSegmentMetadata]:
        """Segments in COPY_SEGMENT_FINISHED."""
        return self.in_state(RemoteLogSegmentState.COPY_SEGMENT_FINISHED)

    def in_state(self, state: RemoteLogSegmentState) -> list[RemoteLogSegmentMetadata]:
        return [segment.metadata for segment in self.segments if segment.metadata.state is state]

    @property
    def on_disk_too(self) -> list[RemoteLogSegmentMetadata]:
        """Finished segments that are on the leader's disk from their first offset on."""
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
    """Records without a key; None where unknown."""
    last_unkeyed: Mapping[int, int] = field(default_factory=dict)
    """By metadata partition, the offset of the last of them."""


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """The result of checking small objects of the remote store; None where something could not be checked.

    How many objects that new followers need were asked for by key, how many transaction indexes were read, how many
    were too long to read, and what is wrong with them.
    """

    auxiliary: int | None = None
    indexes_read: int | None = None
    indexes_passed_over: int | None = None
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """A cluster. `release` is the oldest of its brokers, or as the user states; None where both are missing."""

    clock: Clock
    release: Release | None = None
    broker_releases: Mapping[int, Release | None] = field(default_factory=dict)
    remote_log_metadata_version: int | None = None
    """The finalized level of the feature remote.log.metadata.version (KIP-1266), which no release supports yet."""
    finalized_release: Release | None = None
    """The line whose metadata version is finalized in the cluster."""
    brokers: Mapping[int, BrokerSettings] = field(default_factory=dict)
    controllers_apart: Sequence[int] = ()
    """Controllers that are not brokers, so that brokers do not report their settings."""
    quorum: QuorumDescription | None = None
    """None where it could not be seen, and with ZooKeeper."""
    metadata_logs: Sequence[SeenMetadataLog] = ()
    """Those of the nodes whose log was looked into."""
    has_metadata_topic: bool = True
    metadata_topic: MetadataTopicFacts | None = None
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)
    """The tiered ones."""
    partitions: Sequence[PartitionFacts] = ()
    """Those of the tiered topics."""
    gaps: Sequence[Finding] | None = None
    """Offsets of the partitions that are neither on the leader's disk nor in a segment of the metadata; None where the
    metadata is not known to be whole."""
    unfinished: Sequence[KnownSegment] = ()
    """Copies and deletions that began and did not end, including those of deleted topics."""
    removed: Sequence[Finding] = ()
    """What would be among them, had tieredctl not removed its objects."""
    failing: Sequence[FailingCopy] = ()
    """Partitions whose copies fail again and again; where leaders were asked, of the topics that there are."""
    stores: Sequence[ReplayedMetadata] = ()
    """The metadata of which these facts are."""
    replay: ReplayFacts | None = None
    group_offsets: Sequence[CommittedOffset] = ()
    """The committed offsets of consumer groups, for all topics."""
    replicas: Sequence[LocalReplica] | None = None
    """What the given log directories hold, of all topics; None where none was given."""
    objects: ObjectFacts | None = None
    odd: Sequence[Finding] = ()
    """What was odd in the metadata."""
    not_looked_at: Sequence[Finding] = ()

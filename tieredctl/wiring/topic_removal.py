"""`partition remove`: plans the removal of what a topic left in remote storage, and removes what the plan showed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tieredctl.model.findings import Finding
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.ops.change import totals
from tieredctl.ops.cluster.live_topics import AnsweredTopics, TopicSources, live_topics
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.kept_versions import WhatStays, retention_of
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.topic_removal.remover import RemotePartitionRemover, RemovedPartition, TopicRemovalOutcome
from tieredctl.ops.topic_removal.topic_metadata import TopicMetadata
from tieredctl.ops.topic_removal.topic_removal_plan import (
    PartitionPlan,
    PartitionRemovalRow,
    RemovalScope,
    plan_removal,
    removal_scope,
)
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.wiring.offline_cluster import OfflineClusterPlace
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, Remote, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace


@dataclass(frozen=True, slots=True)
class TopicRemoval:
    """A plan, and what applies it."""

    plans: Sequence[PartitionPlan]
    """One for each partition in the metadata."""
    scope: RemovalScope
    cluster: ClusterPlace | None
    """None for a cluster that is down: then nothing can be removed."""
    cluster_id: str | None
    store: ObjectStore
    _metadata: TopicMetadata
    _remote: Remote[WritableObjectStore] | None
    """None if the store was opened for reading only."""
    _offline: OfflineCluster | None = None
    """A cluster that is down, by its metadata log."""

    @property
    def is_done(self) -> bool:
        """Whether neither the store nor the metadata has anything left to change."""
        return all(plan.is_done(self.scope) for plan in self.plans)

    def source(self) -> Document:
        """What it is about."""
        return {
            "bootstrapServer": None if self.cluster is None else self.cluster.bootstrap_server,
            "clusterId": self.cluster_id,
            "store": self.store.url,
            **({} if self._offline is None else {"cluster": self._offline.describe()}),
        }

    def findings(self) -> list[Finding]:
        """What makes the cluster's own metadata incomplete. Anything else that speaks against a removal raises."""
        return [] if self._offline is None else list(self._offline.findings())

    def rows(self) -> list[PartitionRemovalRow]:
        """One for each partition."""
        return [plan.row() for plan in self.plans]

    def summary(self) -> Document:
        """The sums of all partitions."""
        counted = ("segments", "objects", "bytes", "leftovers", "copies_left_alone", "unknown_objects")
        return {"partitions": len(self.plans), **totals(self.rows(), *counted)}

    def apply(
        self,
        clock_ms: Callable[[], int],
        tell: Callable[[RemovedPartition], None],
        *,
        without_lease: bool = False,
        with_versions: bool = False,
    ) -> tuple[TopicRemovalOutcome, WhatStays]:
        """Removes what was shown, while it holds the store's lease, and with `with_versions` also its kept versions;
        returns what the store still keeps, too.

        Whatever stops it is in the outcome. Raises TieredctlError if it cannot begin.
        """
        if self._remote is None or self.cluster is None:
            raise TypeError("a store that was opened to be read is not changed")
        store, layout = self._remote
        with (
            lease_held(store, "partition remove", clock_ms, unguarded=without_lease) as lease,
            self.cluster.open_metadata_producer() as producer,
        ):
            remover = RemotePartitionRemover(
                *(self.plans, self._metadata, store, layout, producer, lease, clock_ms, self.scope),
                tell=tell,
                with_versions=with_versions,
            )
            outcome = remover.run()
        done = sum(one.done for one in outcome.partitions)
        return outcome, WhatStays(
            retention_of(store), done, sum(one.bytes for one in outcome.partitions), outcome.versions
        )


@contextmanager
def topic_removal(
    topic_id: str,
    partition: int | None,
    cluster: ClusterPlace,
    store: StorePlace,
    *,
    segment_events_only: bool,
    even_if_live: bool,
    to_apply: bool,
    now_ms: int,
) -> Iterator[TopicRemoval]:
    """The plan for all of a topic's partitions, or one. Changes nothing.

    The cluster is asked for the topic after its metadata was read: whatever has events is older than the answer.
    Raises TieredctlError if anything speaks against removing.
    """
    opened, remote = store.open_to(apply=to_apply)
    place = MetadataPlace(cluster=cluster)
    followed = FollowedMetadata(place.open_source)
    with closing(followed):
        metadata = TopicMetadata(topic_id, partition, followed)
        metadata.refresh()
        place.demand_topic_based()
        with TopicsPlace.beside(place).open(now_ms) as topics:
            named = {"segment_events_only": segment_events_only, "even_if_live": even_if_live}
            scope = removal_scope(topic_id, topics.cluster, **named)
        plans = plan_removal(metadata, opened.store, opened.layout, scope)
        yield TopicRemoval(plans, scope, cluster, followed.cluster_id, opened.store, metadata, remote)


@contextmanager
def offline_topic_removal(
    topic_id: str,
    partition: int | None,
    offline: OfflineClusterPlace,
    log_dirs: Sequence[Path],
    store: StorePlace,
    *,
    segment_events_only: bool,
    even_if_live: bool,
    now_ms: int,
) -> Iterator[TopicRemoval]:
    """The plan for a cluster that is down, by its log directories and the metadata log of one of its nodes: to look at.
    Removing takes brokers.

    Raises TieredctlError if anything speaks against removing.
    """
    opened, place, cluster = store.open(), MetadataPlace(tuple(log_dirs)), offline.read().by_the_clock(now_ms)
    followed = FollowedMetadata(place.open_source)
    with closing(followed):
        metadata = TopicMetadata(topic_id, partition, followed)
        metadata.refresh()
        place.demand_topic_based()
        demand_same_cluster(followed.cluster_id, cluster.cluster_id)
        segments = [one for state in map(metadata.state, metadata.partitions()) for one in state.segments]
        # Of each segment the time of its last event: the topic's first one is no later than the least of them.
        first_events_ms = {topic_id: min((one.event_timestamp_ms for one in segments), default=-1)}
        live = live_topics(TopicSources(snapshot=cluster), first_events_ms, followed.source())
        named = {"segment_events_only": segment_events_only, "even_if_live": even_if_live}
        scope = removal_scope(topic_id, AnsweredTopics(live), **named)
        plans = plan_removal(metadata, opened.store, opened.layout, scope)
        yield TopicRemoval(plans, scope, None, followed.cluster_id, opened.store, metadata, None, cluster)

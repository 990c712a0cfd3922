"""`recover metadata`: plans which of a store's segments to register in the metadata again, and writes the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata_recovery.event_rebuilding import StoreListing
from tieredctl.ops.metadata_recovery.known_metadata import (
    KnownMetadata,
    demand_configured_partitions,
    demand_lasting,
    metadata_topic_faults,
)
from tieredctl.ops.metadata_recovery.live_partitions import LivePartitions
from tieredctl.ops.metadata_recovery.recoverer import RecoveredPartition, Recoverer, RecoveryOutcome
from tieredctl.ops.metadata_recovery.recovery_plan import (
    PartitionRecoveryRow,
    Recovery,
    RecoveryPlanner,
    demand_mapped,
    steps,
)
from tieredctl.ops.metadata_recovery.segment_judgement import SegmentJudge
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace


@dataclass(frozen=True, slots=True)
class MetadataRecovery:
    """A plan, and what applies it."""

    recovery: Recovery
    faults: Sequence[Finding]
    """What would delete recovered metadata again."""
    metadata: MetadataPlace
    cluster_id: str | None
    store_url: str
    _known_metadata: KnownMetadata
    _remote: Remote[WritableObjectStore] | None
    """None if the store was opened for reading only."""

    def source(self) -> Document:
        """What it is about."""
        cluster = self.metadata.cluster
        return {
            "bootstrapServer": None if cluster is None else cluster.bootstrap_server,
            "store": self.store_url,
            "clusterId": self.cluster_id,
        }

    def findings(self) -> list[Finding]:
        """About the metadata topic, the metadata, then each partition."""
        return [*self.faults, *self.recovery.all_findings()]

    def steps(self) -> list[str]:
        """What an operator does before and after it, in order."""
        return steps(self.recovery, is_live=self.metadata.cluster is not None)

    def rows(self) -> list[PartitionRecoveryRow]:
        """One for each partition."""
        return [one.row() for one in self.recovery.partitions]

    def summary(self) -> Document:
        """Totals, the operator's steps, and what was found."""
        documents = [finding.document() for finding in self.findings()]
        return self.recovery.summary() | {"steps": self.steps(), "findings": documents}

    def apply(
        self,
        clock_ms: Callable[[], int],
        tell: Callable[[RecoveredPartition], None],
        *,
        without_lease: bool = False,
    ) -> RecoveryOutcome:
        """Writes what was shown, while it holds the store's lease. Whatever stops it is in the outcome. Raises
        TieredctlError if it cannot begin."""
        cluster = self.metadata.cluster
        if self._remote is None or cluster is None:
            raise TypeError("without a live cluster, and a store whose lease can be held, nothing is written")
        store = self._remote.store
        with (
            lease_held(store, "recover metadata", clock_ms, unguarded=without_lease) as lease,
            cluster.open() as now,
            cluster.open_metadata_producer() as producer,
        ):
            look = LivePartitions(now).look
            return Recoverer(
                self.recovery, self._known_metadata, producer, lease, clock_ms, look, store, tell=tell
            ).run()


@contextmanager
def metadata_recovery(
    metadata: MetadataPlace,
    store: StorePlace,
    selection: Selection,
    ids: Mapping[str, str],
    *,
    metadata_partitions: int | None,
    cluster_id: str | None,
    to_apply: bool,
) -> Iterator[MetadataRecovery]:
    """The plan for a store's segments. Changes nothing.

    `ids` maps old topic ids to new ones; `metadata_partitions` is the count that brokers are configured with, if they
    do not report it; `cluster_id` is the cluster that was named, if any. Metadata that cannot be read, or belongs to
    another cluster, is refused before the store is read.
    """
    opened, remote = store.open_to(apply=to_apply)
    followed = FollowedMetadata(partial(_source, metadata))
    with closing(followed):
        first = followed.source()
        metadata.demand_topic_based()
        if to_apply:
            demand_same_cluster(first.cluster_id, cluster_id)
        known_metadata = KnownMetadata(followed)
        with nullcontext() if metadata.cluster is None else metadata.cluster.open() as cluster:
            if cluster is not None and (to_apply or metadata_partitions is not None):
                demand_configured_partitions(cluster, len(first.metadata_partitions()), metadata_partitions)
            faults = [] if cluster is None else metadata_topic_faults(cluster)
            if to_apply:
                demand_lasting(faults)
            listing = StoreListing(opened.store, opened.layout, selection)
            recovery = _planned(listing, known_metadata, cluster, metadata_partitions)
        demand_mapped(recovery, ids, opened.layout)
        yield MetadataRecovery(
            recovery, faults, metadata, followed.cluster_id, opened.store.url, known_metadata, remote
        )


def _source(place: MetadataPlace) -> MetadataSource:
    """Raises TieredctlError as the source does; if there is no metadata topic at all, with a hint how to create it."""
    try:
        return place.open_source()
    except TieredctlError as error:
        if error.code is not ErrorCode.NO_METADATA_TOPIC:
            raise
        create = f"kafka-topics.sh --create --topic {METADATA_TOPIC} --partitions N"
        hint = (
            "Was it deleted? Recreate it, with as many partitions as brokers are configured with (50 by default): "
            f"{create} --replication-factor R --config cleanup.policy=delete --config retention.ms=-1"
        )
        raise TieredctlError(error.code, error.message, hint=hint) from None


def _planned(
    listing: StoreListing,
    known_metadata: KnownMetadata,
    cluster: Cluster | None,
    metadata_partitions: int | None,
) -> Recovery:
    """Lists first, and reads the metadata afterwards: a copy that a broker makes meanwhile is in the metadata before it
    is in the store. The leaders, asked last, may be further then: partitions with findings that may be movement are
    looked at again, from the listing on."""
    stored = list(listing.partitions())
    known_metadata.refresh()
    live = None if cluster is None else LivePartitions(cluster)
    traits = known_metadata.traits
    if live is not None and not traits.tells_txn:
        traits = traits._replace(tells_txn=live.tell_txn())
    look = None if live is None else live.look
    judge = SegmentJudge(known_metadata, listing.store, listing.layout, traits)
    planner = RecoveryPlanner(known_metadata, judge, look, metadata_partitions)
    recovery = planner.plan(listing, stored)
    doubtful = recovery.in_doubt()
    if cluster is None or not doubtful:
        return recovery
    again = StoreListing(listing.store, listing.layout, listing.selection)
    stored_now = [(partition, segments) for partition, segments in again.partitions() if partition in doubtful]
    known_metadata.refresh()
    look_again = replace(planner, look=LivePartitions(cluster).look)
    return recovery.looked_at_again(look_again.partitions(stored_now, doubtful.__contains__))

"""`restore plan` and `apply`: a cluster brought back on new nodes, from its bucket, with a backup set or without."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.metadata.event_filter import EventFilter
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata_recovery.event_rebuilding import StoredSegment
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.recovery_plan import PartitionRecovery, Recovery, RecoveryPlanner
from tieredctl.ops.metadata_recovery.segment_judgement import SegmentJudge
from tieredctl.ops.restore.metadata_logs import cut_offsets
from tieredctl.ops.restore.placement import NewNode, Placement
from tieredctl.ops.restore.restore_plan import RestoreOutcome, RestorePlan, apply_restore
from tieredctl.ops.restore.restored_cluster import is_internal, partitions_of, restored_state
from tieredctl.ops.restore.restored_logs import (
    LogEnds,
    LogsInStore,
    Origin,
    RestoredLog,
    demand_beyond_known,
    demand_beyond_stored,
    demand_taken,
    left_in_store,
    log_without_segments,
    placed_in_log,
    unusable_offsets,
    without_known,
)
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.process.progress import note
from tieredctl.wiring.places import StorePlace
from tieredctl.wiring.restore_sources import Beginnings, ListedStore, RestoreSource, selected


@dataclass(frozen=True, slots=True)
class Restore:
    """A plan, and what applies it."""

    plan: RestorePlan
    newer_sets: int
    """How many there are after the one that is used."""
    _events: MetadataSource
    _only: EventFilter | None

    def apply(self) -> RestoreOutcome:
        """Writes the nodes' files. Raises TieredctlError, and then no node has anything."""
        stream = EventStream(self._events, only=self._only)
        return apply_restore(self.plan, stream, is_cut=self._only is not None)


@contextmanager
def restore(
    source: RestoreSource,
    store: StorePlace,
    nodes: Sequence[NewNode],
    *,
    topics: Sequence[str] = (),
    begin_at: Beginnings,
) -> Iterator[Restore]:
    """The plan, by what the source knows, and by what the store has now. Changes nothing.

    Raises TieredctlError as the source and the store do.
    """
    with source.opened(store, nodes, topics, begin_at) as cluster:
        state = cluster.state
        _demand_partitions(state, begin_at)
        placement = Placement.of(nodes, state.image, cluster.sha256)
        metadata = KnownMetadata(FollowedMetadata(partial(_same, cluster.events)))
        metadata.refresh()
        ends, promised = _known_of(state, metadata, cluster.log_ends)
        demand_beyond_known(begin_at, ends)
        recovery, in_store = _recovery(cluster.store, metadata, ends, cluster.events.partition_count)
        for one in () if recovery is None else recovery.partitions:
            if (one.partition.topic, one.partition.partition) in begin_at:
                ends[one.partition] = LogEnds.seen(ends[one.partition], unusable_offsets(one))
        logs = {one: _log(one, in_store.get(one), ends[one], begin_at, count) for one, count in promised.items()}
        demand_taken(begin_at, logs.values())
        if recovery is not None:
            demand_beyond_stored(recovery, logs)
        by_name = {(one.topic, one.partition): log for one, log in logs.items() if log.origin is not Origin.INTERNAL}
        plan = RestorePlan(
            cluster.manifest,
            cluster.sha256,
            store.url,
            nodes,
            placement,
            restored_state(state, logs, placement),
            logs,
            cut_offsets(cluster.committed, by_name),
            recovery,
            cluster.accepts_unknown,
            cluster.secrets,
        )
        only = EventFilter.given(selected(topics), None, None) if topics else None
        yield Restore(plan, cluster.newer_sets, cluster.events, only)


def _log(
    partition: TopicIdPartition,
    in_store: RestoredLog | None,
    ends: LogEnds | None,
    begin_at: Beginnings,
    promised: int,
) -> RestoredLog:
    if in_store is not None:
        return in_store
    if is_internal(partition.topic):
        return RestoredLog(partition, Origin.INTERNAL)
    return log_without_segments(partition, ends, begin_at.get((partition.topic, partition.partition)), promised)


def _demand_partitions(state: ClusterState, begin_at: Beginnings) -> None:
    in_set = {(one.topic, one.partition) for one in partitions_of(state.image)}
    for topic, partition in begin_at:
        if (topic, partition) not in in_set:
            raise TieredctlError(ErrorCode.USAGE, f"--begin-at: there is no partition {topic}-{partition} to restore.")


def _known_of(
    state: ClusterState, metadata: KnownMetadata, listed: Mapping[tuple[str, int], LogEnds]
) -> tuple[dict[TopicIdPartition, LogEnds | None], dict[TopicIdPartition, int]]:
    """Where each partition's log began and ended, and how many segments by the events are in the store."""
    ends, promised = dict[TopicIdPartition, LogEnds | None](), dict[TopicIdPartition, int]()
    for one in partitions_of(state.image):
        segments = metadata.segments(one).values()
        finished = [segment for segment in segments if segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]
        ends[one] = LogEnds.known(listed.get((one.topic_id, one.partition)), finished)
        promised[one] = len(finished)
    return ends, promised


def _recovery(
    listed: ListedStore | None,
    metadata: KnownMetadata,
    ends: Mapping[TopicIdPartition, LogEnds | None],
    metadata_partitions: int | None,
) -> tuple[Recovery | None, dict[TopicIdPartition, RestoredLog]]:
    """What the store has, beside what the events say; nothing where it is empty."""
    if listed is None:
        return None, {}
    judge = SegmentJudge(metadata, listed.store, listed.layout, metadata.traits, brokers_are_gone=True)
    planner = RecoveryPlanner(metadata, judge, metadata_partitions=metadata_partitions)
    in_store = LogsInStore(listed.store, listed.layout)
    logs, kept, findings = dict[TopicIdPartition, RestoredLog](), list[PartitionRecovery](), list[Finding]()
    for done, (partition, segments) in enumerate(_with_promised(listed, metadata, ends), 1):
        one = planner.partition(partition, segments)
        if not one.segments:
            continue
        if partition in ends:
            log = in_store.log(one, metadata.deleted_offsets(partition), ends[partition])
            if log is not None:
                logs[partition] = log
                one = without_known(placed_in_log(one, log, planner) if ends[partition] is None else one)
            kept.append(one)
        else:
            findings += left_in_store(one)
        note("partitions", done)
    listing = listed.listing
    return Recovery(kept, listing.objects, listing.unexplained, (*metadata.findings, *findings)), logs


def _with_promised(
    listed: ListedStore, metadata: KnownMetadata, restored: Collection[TopicIdPartition]
) -> Iterator[tuple[TopicIdPartition, Sequence[StoredSegment]]]:
    """What the store has by partition; of those partitions of which the listing has nothing, and the events have
    segments, nothing: it may be older than these."""
    seen = set[TopicIdPartition]()
    for partition, segments in listed.partitions():
        seen.add(partition)
        yield partition, segments
    yield from ((one, ()) for one in restored if one not in seen and metadata.segments(one))


def _same(events: MetadataSource) -> MetadataSource:
    return events

"""`restore plan` and `apply`: a cluster brought back on new nodes, from its bucket, with a backup set or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.backup.cluster_state import ClusterState
from tieredctl.ops.metadata.event_filter import EventFilter
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.recovery_plan import Recovery, RecoveryPlanner
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
    log_without_segments,
    of_known_topics,
    placed_in_log,
    unusable_offsets,
)
from tieredctl.ports.metadata_source import MetadataSource
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
        promised = _promised(metadata, partitions_of(state.image))
        listed = cluster.log_ends
        ends = {one: LogEnds.known(listed.get((one.topic_id, one.partition)), some) for one, some in promised.items()}
        demand_beyond_known(begin_at, ends)
        recovery, in_store = _recovery(cluster.store, metadata, ends, cluster.events.partition_count)
        for one in () if recovery is None else recovery.partitions:
            if (one.partition.topic, one.partition.partition) in begin_at:
                ends[one.partition] = LogEnds.seen(ends[one.partition], unusable_offsets(one))
        logs = {one: _log(one, in_store.get(one), ends[one], begin_at, len(some)) for one, some in promised.items()}
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
    known = {(one.topic, one.partition) for one in partitions_of(state.image)}
    for topic, partition in begin_at:
        if (topic, partition) not in known:
            raise TieredctlError(ErrorCode.USAGE, f"--begin-at: there is no partition {topic}-{partition} to restore.")


def _promised(
    known: KnownMetadata, partitions: Iterable[TopicIdPartition]
) -> Mapping[TopicIdPartition, Sequence[RemoteLogSegmentMetadata]]:
    """The segments that by the events are in the store, of each partition."""
    finished = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    return {
        one: [segment for segment in known.segments(one).values() if segment.state is finished] for one in partitions
    }


def _recovery(
    listed: ListedStore | None,
    known: KnownMetadata,
    ends: Mapping[TopicIdPartition, LogEnds | None],
    metadata_partitions: int | None,
) -> tuple[Recovery | None, dict[TopicIdPartition, RestoredLog]]:
    """What the store has, beside what the events say; nothing where it is empty."""
    if listed is None:
        return None, {}
    store, layout, listing = listed.store, listed.layout, listed.listing
    judge = SegmentJudge(known, store, layout, known.traits, brokers_are_gone=True)
    planner = RecoveryPlanner(known, judge, metadata_partitions=metadata_partitions)
    found = Recovery(
        list(planner.partitions(listed.stored)), listing.objects, listing.unexplained, tuple(known.findings)
    )
    recovery = of_known_topics(found, ends)
    in_store = LogsInStore(store, layout)
    logs, kept = {}, []
    for one in recovery.partitions:
        log = in_store.log(one, known.deleted_offsets(one.partition), ends[one.partition])
        if log is not None:
            logs[one.partition] = log
        kept.append(placed_in_log(one, log, planner) if log is not None and ends[one.partition] is None else one)
    return replace(recovery, partitions=kept), logs


def _same(events: MetadataSource) -> MetadataSource:
    return events

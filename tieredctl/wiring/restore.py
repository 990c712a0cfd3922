"""`restore plan` and `apply`: a cluster brought back on new nodes, from its bucket and a backup set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.backup.cluster_state import ClusterState, read_cluster_state
from tieredctl.ops.backup.manifests import CLUSTER_FILE, EVENTS_FILE, GROUPS_FILE, OFFSETS_FILE, Manifest
from tieredctl.ops.backup.sets import ClusterSets, KnownSet
from tieredctl.ops.metadata.event_filter import EventFilter
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata_recovery.event_rebuilding import StoreListing
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.recovery_plan import Recovery, RecoveryPlanner
from tieredctl.ops.metadata_recovery.segment_judgement import SegmentJudge
from tieredctl.ops.restore.metadata_logs import cut_offsets
from tieredctl.ops.restore.restore_plan import RestoreOutcome, RestorePlan, apply_restore
from tieredctl.ops.restore.restored_cluster import (
    NewNode,
    Placement,
    cut_to_topics,
    is_internal,
    partitions_of,
    restored_state,
)
from tieredctl.ops.restore.restored_logs import (
    LogEnds,
    LogsInStore,
    Origin,
    RestoredLog,
    log_without_segments,
    of_known_topics,
)
from tieredctl.ports.cluster import CommittedOffset
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import ObjectStore, list_unreserved
from tieredctl.wiring.backup import backup_sets
from tieredctl.wiring.places import StorePlace


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
    sets_at: StorePlace,
    store: StorePlace,
    nodes: Sequence[NewNode],
    *,
    cluster_id: str | None = None,
    number: int | None = None,
    topics: Sequence[str] = (),
    begin_at: Mapping[tuple[str, int], int],
) -> Iterator[Restore]:
    """The plan, by the newest set or the one of a number, and by what the store has now. Changes nothing.

    Every file of the set and of those that it needs is checked first. Raises TieredctlError where one is damaged, where
    the store has nothing of the cluster, and as the stores do.
    """
    sets = backup_sets(sets_at, cluster_id)
    numbers = sets.numbers()
    chain = sets.chain(numbers[-1] if number is None else number)
    manifest = chain[-1].manifest
    data = sets.read_file(manifest, CLUSTER_FILE)
    state = read_cluster_state(data, manifest.metadata_log_end)
    state = ClusterState(cut_to_topics(state.image, topics), state.epoch, state.versions)
    _demand_topics(state, begin_at)
    placement = Placement.of(nodes, state.image, chain[-1].sha256)
    listed = _log_ends(sets, manifest)
    with (
        TemporaryDirectory(prefix="tieredctl-restore-") as folder,
        closing(_events(sets, chain, Path(folder))) as events,
    ):
        selection = Selection.given([one for one in topics if not is_internal(one)] or None, None, None, ())
        metadata = KnownMetadata(FollowedMetadata(partial(_same, events)))
        metadata.refresh()
        promised = _promised(metadata, partitions_of(state.image))
        ends = {one: LogEnds.known(listed.get((one.topic_id, one.partition)), some) for one, some in promised.items()}
        recovery, in_store = _recovery(store, metadata, selection, ends, events.partition_count)
        logs = {one: _log(one, in_store.get(one), ends[one], begin_at, len(some)) for one, some in promised.items()}
        by_name = {(one.topic, one.partition): log for one, log in logs.items() if log.origin is not Origin.INTERNAL}
        plan = RestorePlan(
            manifest,
            chain[-1].sha256,
            store.url,
            nodes,
            placement,
            restored_state(state, logs, placement),
            logs,
            cut_offsets(_committed(sets, manifest), by_name),
            recovery,
        )
        only = EventFilter.given(selection, None, None) if topics else None
        yield Restore(plan, numbers[-1] - manifest.number, events, only)


def _log(
    partition: TopicIdPartition,
    in_store: RestoredLog | None,
    ends: LogEnds | None,
    begin_at: Mapping[tuple[str, int], int],
    promised: int,
) -> RestoredLog:
    if in_store is not None:
        return in_store
    if is_internal(partition.topic):
        return RestoredLog(partition, Origin.INTERNAL)
    return log_without_segments(partition, ends, begin_at.get((partition.topic, partition.partition)), promised)


def _demand_topics(state: ClusterState, begin_at: Mapping[tuple[str, int], int]) -> None:
    known = {(one.topic, one.partition) for one in partitions_of(state.image)}
    for topic, partition in begin_at:
        if (topic, partition) not in known:
            raise TieredctlError(ErrorCode.USAGE, f"--begin-at: the set has no partition {topic}-{partition}.")


def _promised(
    known: KnownMetadata, partitions: Iterable[TopicIdPartition]
) -> Mapping[TopicIdPartition, Sequence[RemoteLogSegmentMetadata]]:
    """The segments that by the events are in the store, of each partition."""
    finished = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    return {
        one: [segment for segment in known.segments(one).values() if segment.state is finished] for one in partitions
    }


def _recovery(
    place: StorePlace,
    known: KnownMetadata,
    selection: Selection,
    ends: Mapping[TopicIdPartition, LogEnds | None],
    metadata_partitions: int | None,
) -> tuple[Recovery | None, dict[TopicIdPartition, RestoredLog]]:
    """What the store has, beside what the events say; nothing where it is empty."""
    try:
        remote = place.open()
    except TieredctlError as error:
        if error.code is not ErrorCode.UNKNOWN_LAYOUT or any(list_unreserved(place.open_store())):
            raise
        return None, {}
    listing = StoreListing(remote.store, remote.layout, selection)
    stored = list(listing.partitions())
    if listing.objects and listing.unexplained == listing.objects:
        message = f"The layout {remote.layout.name} explains none of the {listing.objects} objects of {place.url}."
        raise TieredctlError(ErrorCode.NO_OVERLAP, message)
    judge = SegmentJudge(known, remote.store, remote.layout, known.traits, brokers_are_gone=True)
    planner = RecoveryPlanner(known, judge, metadata_partitions=metadata_partitions)
    found = Recovery(list(planner.partitions(stored)), listing.objects, listing.unexplained, tuple(known.findings))
    recovery = of_known_topics(found, ends)
    in_store = LogsInStore(remote.store, remote.layout)
    logs = {}
    for one in recovery.partitions:
        log = in_store.log(one, known.deleted_offsets(one.partition), ends[one.partition])
        if log is not None:
            logs[one.partition] = log
    return recovery, logs


def _same(events: MetadataSource) -> MetadataSource:
    return events


def _events(sets: ClusterSets[ObjectStore], chain: Sequence[KnownSet], folder: Path) -> MetadataSource:
    """The events of all sets of a chain, each file checked and put on this machine's disk."""
    from tieredctl.kafka.export_chain import ExportChain
    from tieredctl.kafka.export_file import ExportFile

    exports = []
    for one in chain:
        file = folder / f"{one.manifest.number}-{EVENTS_FILE}"
        file.write_bytes(sets.read_file(one.manifest, EVENTS_FILE))
        exports.append(ExportFile(file))
    return ExportChain(exports)


def _log_ends(sets: ClusterSets[ObjectStore], manifest: Manifest) -> dict[tuple[str, int], LogEnds]:
    items = _items(sets, manifest, OFFSETS_FILE)
    return {(one["topicId"], one["partition"]): LogEnds(one["earliest"], one["latest"]) for one in items}


def _committed(sets: ClusterSets[ObjectStore], manifest: Manifest) -> list[CommittedOffset]:
    if manifest.file(GROUPS_FILE) is None:
        return []
    return [CommittedOffset(**one) for one in _items(sets, manifest, GROUPS_FILE)]


def _items(sets: ClusterSets[ObjectStore], manifest: Manifest, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(sets.read_file(manifest, name))["items"]
    return items

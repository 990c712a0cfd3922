"""Asks a live cluster for all that `doctor` judges. What may not be seen is reported, and the rest is still judged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kraft_snapshot import FIRST_BATCH_WITHIN, snapshot_times
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_metadata_log import SeenMetadataLog, SeenSnapshot
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.offsets import PartitionOffsets, topic_offsets
from tieredctl.ops.cluster.platforms import demand_metadata_here
from tieredctl.ops.cluster.release import Release, release_of_metadata_version
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, MetadataTopicFacts, ObjectFacts, PartitionFacts, ReplayFacts
from tieredctl.ops.cluster.topic_settings import (
    TopicSettings,
    copy_lag,
    offset_by_time,
    readable_topic_configs,
    unreadable_settings,
)
from tieredctl.ops.doctor.looking import (
    GROUPS,
    METADATA_RECORDS,
    METADATA_TOPIC_SETTINGS,
    OFFSETS,
    TOPIC_SETTINGS,
    Looking,
)
from tieredctl.ops.doctor.object_checks import auxiliary_state, transaction_indexes
from tieredctl.ops.doctor.remote_gaps import gaps_of_topic
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import failing_copies, replayed
from tieredctl.ops.metadata.stats import statistics
from tieredctl.ports.cluster import (
    BrokerFeatures,
    Cluster,
    ConfigValue,
    ConsumerGroups,
    ListedOffset,
    QuorumDescription,
)
from tieredctl.ports.layout import Layout
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.snapshot_source import LeaderChanged, SnapshotSource
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_UNFINISHED = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
_METADATA_VERSION = "metadata.version"
_DEFAULT = "DEFAULT_CONFIG"
_UNSUPPORTED = "UNSUPPORTED_VERSION"


def gather_settings(cluster: Cluster, clock: Clock, release: Release | None) -> ClusterSnapshot:
    """Releases, brokers', topics' and the metadata topic's settings; no records are read.

    `release` is the one that the user stated. Raises TieredctlError `usage` where the brokers run another.
    """
    looking = Looking()
    features = looking.at("releases", cluster.broker_features) or {}
    releases = {broker: _release_of(one.supported) for broker, one in features.items()}
    observed = _oldest(releases)
    if release is not None and observed is not None and release.line != observed.line:
        raise TieredctlError(
            ErrorCode.USAGE, f"The brokers run {observed}, not {release}.", hint="Check --kafka-version."
        )
    assumed = release or observed
    configs = looking.at("broker settings", cluster.broker_configs) or {}
    brokers = {node: BrokerSettings(f"broker {node}", _values(one), assumed) for node, one in configs.items()}
    quorum = looking.at("controllers", cluster.quorum)
    has_metadata_topic, metadata_topic = _metadata_topic(cluster, looking)
    return ClusterSnapshot(
        clock,
        release=assumed,
        broker_releases=releases,
        finalized_release=_finalized(features),
        remote_log_metadata_version=_remote_log_metadata_version(features),
        brokers=brokers,
        controllers_apart=_controllers_apart(quorum, features),
        quorum=quorum,
        has_metadata_topic=has_metadata_topic,
        metadata_topic=metadata_topic,
        topics=looking.at(TOPIC_SETTINGS, lambda: _topics(cluster, assumed, brokers, looking)) or {},
        not_looked_at=looking.findings,
    )


def of_stopped_cluster(settings: ClusterSnapshot, open_events: Callable[[], EventStream] | None) -> ClusterSnapshot:
    """The snapshot of a cluster that no broker answers for, with what its metadata topic has, if that can be read. What
    only leaders and coordinators know is noted as not checked."""
    looking = Looking(list(settings.not_looked_at))
    unknown = {OFFSETS: "no leader answers", GROUPS: "no coordinator answers"}
    if open_events is None:
        unknown[METADATA_RECORDS] = "no log directory was given"
    looking.findings += [Finding(FindingCode.CHECK_NOT_MADE, what, why) for what, why in unknown.items()]
    read = None if open_events is None else looking.at(METADATA_RECORDS, lambda: _read(open_events()))
    if read is None:
        return replace(settings, not_looked_at=looking.findings)
    stores, replay, odd = read
    unfinished = [segment for store in stores for _, segment in store.known(store.in_states(_UNFINISHED))]
    failing = [one for store in stores for one in failing_copies(store, settings.clock.now_ms)]
    return replace(
        settings, unfinished=unfinished, failing=failing, replay=replay, odd=odd, not_looked_at=looking.findings
    )


def oldest_release(cluster: Cluster) -> Release | None:
    """The brokers' release, as far as their features show. Raises TieredctlError as the cluster does."""
    return _oldest({broker: _release_of(one.supported) for broker, one in cluster.broker_features().items()})


def with_tiered_data(
    settings: ClusterSnapshot, cluster: Cluster, open_events: Callable[[], EventStream]
) -> ClusterSnapshot:
    """The snapshot with where each partition's log is: offsets first, then bytes, then the metadata, so that segments
    tiered meanwhile are never missed."""
    return with_metadata(with_offsets(settings, cluster), lambda: _read(open_events()), cluster)


def with_offsets(settings: ClusterSnapshot, cluster: Cluster) -> ClusterSnapshot:
    """The snapshot with the offsets and bytes that leaders report, without what the metadata has."""
    looking = Looking(list(settings.not_looked_at))
    rows = [row for name in settings.topics for row in _offsets(cluster, name, looking)]
    sizes = looking.at("bytes on disks", lambda: cluster.replica_bytes(list(settings.topics))) or {}
    young = {name: _first_young(cluster, one, settings.clock, looking) for name, one in settings.topics.items()}
    partitions = [_partition(row, sizes, young[row.topic].get(row.partition)) for row in rows]
    return replace(settings, partitions=partitions, not_looked_at=looking.findings)


class ReadMetadata(NamedTuple):
    """The metadata, as it was read after the offsets."""

    stores: Sequence[ReplayedMetadata]
    replay: ReplayFacts
    odd: Sequence[Finding]

    @property
    def is_whole(self) -> bool:
        """Whether no event may be missing."""
        return is_whole(self.odd)


def with_metadata(
    cluster: ClusterSnapshot, read: Callable[[], ReadMetadata], leaders: Cluster | None = None
) -> ClusterSnapshot:
    """The snapshot with what the metadata has of each partition; it is read only if there is such a topic. Gaps are
    looked for where `leaders` can be asked again."""
    looking = Looking(list(cluster.not_looked_at))
    metadata = looking.at(METADATA_RECORDS, read) if cluster.has_metadata_topic else None
    if metadata is None:
        return replace(cluster, not_looked_at=looking.findings)
    stores, replay, odd = metadata
    gaps = None if leaders is None or not metadata.is_whole else _gaps(cluster, stores, leaders, looking)
    partitions = [_with_segments(facts, stores) for facts in cluster.partitions]
    there = {facts.partition for facts in partitions}
    tried = (one for store in stores for one in failing_copies(store, cluster.clock.now_ms))
    failing = [one for one in tried if one.partition in there]
    unfinished = [segment for store in stores for _, segment in store.known(store.in_states(_UNFINISHED))]
    return replace(
        cluster,
        partitions=partitions,
        gaps=gaps,
        unfinished=unfinished,
        failing=failing,
        stores=stores,
        replay=replay,
        odd=odd,
        not_looked_at=looking.findings,
    )


def _gaps(
    cluster: ClusterSnapshot, stores: Sequence[ReplayedMetadata], leaders: Cluster, looking: Looking
) -> Sequence[Finding] | None:
    """Gaps in remote storage; None where the brokers keep their metadata elsewhere, or may do so."""
    if not cluster.brokers or not all(node.uses_topic_based_metadata for node in cluster.brokers.values()):
        return None
    gaps: list[Finding] = []
    for name in cluster.topics:
        parts = [facts for facts in cluster.partitions if facts.partition.topic == name]
        gaps += looking.at(f"gaps of {name}", partial(gaps_of_topic, leaders, name, parts, stores)) or []
    return gaps


def with_group_offsets(cluster: ClusterSnapshot, groups: ConsumerGroups) -> ClusterSnapshot:
    """The snapshot with the offsets that consumer groups committed."""
    looking = Looking(list(cluster.not_looked_at))
    committed = looking.at(GROUPS, groups.committed_offsets) or ()
    return replace(cluster, group_offsets=committed, not_looked_at=looking.findings)


def with_metadata_logs(
    cluster: ClusterSnapshot, on_disk: Sequence[SeenMetadataLog], leader: SnapshotSource | None
) -> ClusterSnapshot:
    """The snapshot with nodes' metadata logs: those on disk, and the leader's by its own answers."""
    looking = Looking(list(cluster.not_looked_at))
    answered = None if leader is None else looking.at("the leader's snapshot", lambda: _leaders_log(leader))
    node_ids = {log.node_id for log in on_disk}
    logs = [*on_disk, *([] if answered is None or answered.node_id in node_ids else [answered])]
    return replace(cluster, metadata_logs=logs, not_looked_at=looking.findings)


def _leaders_log(source: SnapshotSource) -> SeenMetadataLog:
    leader = source.leader()
    latest, snapshots = leader.latest_snapshot, []
    if latest is not None:
        try:
            chunk = source.chunk(latest, 0, FIRST_BATCH_WITHIN)
        except LeaderChanged:
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, "the leader changed meanwhile.", hint="") from None
        times = snapshot_times(chunk.data) or (None, None)
        snapshots = [SeenSnapshot(latest.end_offset, latest.epoch, chunk.size, *times)]
    where = f"leader {leader.node_id}"
    return SeenMetadataLog(
        leader.node_id, where, leader.log_start_offset, snapshots, first_record_ms=source.log_begins_ms()
    )


def with_objects(
    cluster: ClusterSnapshot, store: ObjectStore, layout: Layout, open_events: Callable[[], EventStream]
) -> ClusterSnapshot:
    """The snapshot with small objects of the remote store. A fault is only believed if the metadata, read once more,
    still has the segment."""
    looking = Looking(list(cluster.not_looked_at))
    state = looking.at("what new followers need", lambda: auxiliary_state(cluster.partitions, store, layout))
    indexes = looking.at("transaction indexes", lambda: transaction_indexes(cluster.partitions, store, layout))
    findings = [finding for one in (state, indexes) if one is not None for finding in one.findings]
    if findings:
        kept = looking.at("a second read of the metadata", lambda: _finished_segments(open_events())) or frozenset()
        findings = [finding for finding in findings if kept.issuperset(finding.about.segment_ids)]
    objects = ObjectFacts(
        state and state.objects, indexes and indexes.objects, indexes and indexes.passed_over, findings
    )
    return replace(cluster, objects=objects, not_looked_at=looking.findings)


def _finished_segments(stream: EventStream) -> frozenset[str]:
    metadata = replayed(stream)
    finished = metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])
    return frozenset(metadata.rows.segment_ids.at(finished).texts())


def _release_of(supported: Mapping[str, int]) -> Release | None:
    return release_of_metadata_version(supported.get(_METADATA_VERSION, 0))


def _oldest(releases: Mapping[int, Release | None]) -> Release | None:
    known_releases = [release for release in releases.values() if release is not None]
    return min(known_releases) if known_releases and len(known_releases) == len(releases) else None


def _finalized(features: Mapping[int, BrokerFeatures]) -> Release | None:
    levels = [one.finalized[_METADATA_VERSION] for one in features.values() if _METADATA_VERSION in one.finalized]
    return release_of_metadata_version(min(levels)) if levels else None


def _remote_log_metadata_version(features: Mapping[int, BrokerFeatures]) -> int | None:
    name = "remote.log.metadata.version"
    return min((one.finalized[name] for one in features.values() if name in one.finalized), default=None)


def _controllers_apart(quorum: QuorumDescription | None, features: Mapping[int, BrokerFeatures]) -> Sequence[int]:
    """The nodes that vote and are not brokers."""
    voters = () if quorum is None or not features else quorum.voters
    return [voter.node_id for voter in voters if voter.node_id not in features]


def _values(configs: Mapping[str, ConfigValue]) -> dict[str, str | None]:
    """The stated values. A default without a value is left out, so that it is not taken for a secret."""
    return {name: one.value for name, one in configs.items() if one.value is not None or one.source != _DEFAULT}


def _metadata_topic(cluster: Cluster, looking: Looking) -> tuple[bool, MetadataTopicFacts | None]:
    try:
        description = cluster.topic(METADATA_TOPIC)
    except TieredctlError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC:
            demand_metadata_here(cluster)
            return False, None
        looking.note("the metadata topic", error)
        return True, None
    configs = looking.at(METADATA_TOPIC_SETTINGS, lambda: cluster.topic_configs([METADATA_TOPIC])) or {}
    return True, MetadataTopicFacts(description, _values(configs.get(METADATA_TOPIC, {})))


def _topics(
    cluster: Cluster, release: Release | None, brokers: Collection[int], looking: Looking
) -> dict[str, TopicSettings]:
    """The tiered topics; `brokers` are those that reported their settings, if any did: the others that have replicas
    are noted."""
    partitions = cluster.topic_partitions()
    with_replicas = {broker for of_topic in partitions.values() for one in of_topic for broker in one.replicas}
    silent = sorted(with_replicas.difference(brokers)) if brokers else []
    if silent:
        who = ", ".join(f"broker {broker}" for broker in silent)
        message = f"{who} did not answer: neither release nor settings are known, as of a broker that is down"
        looking.findings.append(Finding(FindingCode.CHECK_NOT_MADE, "brokers", message, {"brokerIds": silent}))
    return _tiered_among(cluster, sorted(partitions), release, looking)


def tiered_topics(cluster: Cluster, release: Release | None, looking: Looking) -> dict[str, TopicSettings]:
    """The settings of the tiered topics, by name; topics whose settings may not be seen are noted. Raises
    TieredctlError as the cluster does."""
    return _tiered_among(cluster, cluster.topic_names(), release, looking)


def _tiered_among(
    cluster: Cluster, topics: Iterable[str], release: Release | None, looking: Looking
) -> dict[str, TopicSettings]:
    names = [name for name in topics if name != METADATA_TOPIC]
    readable = readable_topic_configs(cluster, names)
    looking.findings += unreadable_settings(readable.denied)
    every = (TopicSettings(name, _values(one), release) for name, one in readable.settings.items())
    return {settings.topic: settings for settings in every if settings.is_tiered}


def _offsets(cluster: Cluster, name: str, looking: Looking) -> list[PartitionOffsets]:
    rows = looking.at(f"offsets of {name}", lambda: topic_offsets(cluster, name).rows()) or []
    for row in rows:
        failed = {spec: error for spec, error in row.errors.items() if error != _UNSUPPORTED}
        if failed:
            spec, error = next(iter(failed.items()))
            looking.findings.append(
                Finding(
                    FindingCode.CHECK_NOT_MADE,
                    f"offsets of {name}-{row.partition}",
                    f"the leader answered {spec} with {error}",
                )
            )
    return rows


def _first_young(
    cluster: Cluster, settings: TopicSettings, clock: Clock, looking: Looking
) -> Mapping[int, ListedOffset]:
    """By partition; empty where the topic has no copy lag by time."""
    lag = copy_lag(settings)
    if lag is None or lag.ms < 0:
        return {}
    what = f"offsets of {settings.topic} by time"
    since = max(0, clock.now_ms - lag.ms)
    answers = looking.at(what, lambda: cluster.list_offsets(cluster.topic(settings.topic), since)) or {}
    return {partition: answer for partition, answer in answers.items() if answer.error is None}


def _read(stream: EventStream) -> ReadMetadata:
    counted = statistics(stream, is_described=True)
    total = counted.total
    replay = ReplayFacts(
        total["events"], total["deadRatio"], total["replaySeconds"], total["unkeyed"], counted.last_unkeyed
    )
    return ReadMetadata(counted.stores, replay, stream.findings)


def _partition(
    row: PartitionOffsets, sizes: Mapping[tuple[str, int], Mapping[int, int]], first_young: ListedOffset | None
) -> PartitionFacts:
    return PartitionFacts(
        TopicIdPartition(row.topic_id, row.topic, row.partition),
        leader=row.leader,
        earliest=row.earliest,
        earliest_local=row.earliest_local,
        latest_tiered=row.latest_tiered,
        latest=row.latest,
        local_bytes=None if row.leader is None else sizes.get((row.topic, row.partition), {}).get(row.leader),
        first_young=None if first_young is None or row.latest is None else offset_by_time(first_young, row.latest),
    )


def _with_segments(facts: PartitionFacts, stores: Iterable[ReplayedMetadata]) -> PartitionFacts:
    partition, read = facts.partition, list(stores)
    has_events = any(partition in store.events.partitions for store in read)
    cache = next((store.caches[partition] for store in read if partition in store.caches), None)
    if cache is None:
        return replace(facts, has_events=has_events)
    segments = cache.list_remote_log_segments()
    referenced, finished = cache.referenced(), RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    copied = {one.metadata.segment_id for one in segments if one.metadata.state is finished}
    displaced = frozenset(copied - referenced)
    return replace(facts, segments=segments, displaced=displaced, has_events=has_events)

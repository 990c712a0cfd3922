"""Whether a live cluster's metadata topic exists, is durable, and is kept long enough.

Events without keys that a metadata topic's retention deletes though their segments live.

While the topic moves to KIP-1266's compaction its `cleanup.policy` is `compact,delete`, with a `retention.ms`: events
that were written before brokers wrote keys go when they are that old, those of live segments too.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import NamedTuple

from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.broker_settings import as_number
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, MetadataTopicFacts
from tieredctl.ops.cluster.topic_settings import CLEANUP_POLICY, RETENTION_BYTES, RETENTION_MS
from tieredctl.ops.doctor.broker_rules import WISE_REPLICATION, min_isr_fault, retention_fault
from tieredctl.ports.cluster import PartitionDescription
from tieredctl.ports.metadata_source import METADATA_TOPIC

MIN_ISR = "min.insync.replicas"
SLOW_REPLAY_SECONDS = 60
MOSTLY_DEAD = 0.5
"""A topic that takes longer to replay and has more dead events than this is called bloated: tieredctl's judgement."""


def metadata_topic_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """From the topic's description and settings; what replay costs, where its records were read."""
    if not cluster.has_metadata_topic and cluster.topics:
        topics = counted(len(cluster.topics), "topic is", "topics are")
        message = f"{topics} tiered, but this topic does not exist: no segment can be copied"
        yield Finding(FindingCode.METADATA_TOPIC_MISSING, METADATA_TOPIC, message)
    if cluster.metadata_topic is not None:
        for partition in cluster.metadata_topic.description.partitions:
            yield from _under_replicated(partition)
        yield from _durability(cluster.metadata_topic)
        yield from _retention(cluster.metadata_topic, cluster)
        yield from _compactable(cluster.metadata_topic, cluster)
        yield from expiring_events(cluster.metadata_topic, cluster)
    yield from _bloat(cluster)


def _under_replicated(partition: PartitionDescription) -> Iterator[Finding]:
    if partition.leader is None:
        message = "it has no leader: the user partitions whose metadata it holds are not tiered"
    elif len(partition.in_sync_replicas) < len(partition.replicas):
        missing = sorted(set(partition.replicas) - set(partition.in_sync_replicas))
        message = f"out-of-sync replicas on brokers: {', '.join(map(str, missing))}"
    else:
        return
    evidence: dict[str, object] = {
        "metadataPartition": partition.partition,
        "replicas": list(partition.replicas),
        "inSyncReplicas": list(partition.in_sync_replicas),
    }
    yield Finding(
        FindingCode.METADATA_TOPIC_UNDER_REPLICATED, f"{METADATA_TOPIC}-{partition.partition}", message, evidence
    )


def _durability(topic: MetadataTopicFacts) -> Iterator[Finding]:
    replicas = min((len(partition.replicas) for partition in topic.description.partitions), default=0)
    min_isr = as_number(topic.settings.get(MIN_ISR))
    if replicas < WISE_REPLICATION:
        message = f"{replicas} of {WISE_REPLICATION} replicas: segments whose metadata is lost can no longer be read"
        evidence: dict[str, object] = {"replicas": replicas, "topic": METADATA_TOPIC}
        yield Finding(FindingCode.TOPIC_CONFIG_METADATA_REPLICATION, METADATA_TOPIC, message, evidence)
    elif min_isr is not None and (fault := min_isr_fault(min_isr, replicas)):
        message = f"{MIN_ISR} is {min_isr}: {fault}"
        evidence = _evidence(topic, MIN_ISR, str(replicas - 1))
        yield Finding(FindingCode.TOPIC_CONFIG_METADATA_MIN_ISR, METADATA_TOPIC, message, evidence)


def _retention(topic: MetadataTopicFacts, cluster: ClusterSnapshot) -> Iterator[Finding]:
    code = FindingCode.TOPIC_CONFIG_METADATA_RETENTION
    time, size = as_number(topic.settings.get(RETENTION_MS)), as_number(topic.settings.get(RETENTION_BYTES))
    topics = ((name, one) for name, one in cluster.topics.items() if one.is_known(RETENTION_MS))
    kept = [(f"topic {name}", one.number(RETENTION_MS)) for name, one in topics]
    if time is not None and (fault := retention_fault(time, kept)):
        yield Finding(code, METADATA_TOPIC, fault, _evidence(topic, RETENTION_MS, "-1"))
    if size is not None and size >= 0:
        message = f"{RETENTION_BYTES} is {size}: the oldest events are deleted, even those of live segments"
        yield Finding(code, METADATA_TOPIC, message, _evidence(topic, RETENTION_BYTES, "-1"))
    policy = topic.settings.get(CLEANUP_POLICY)
    is_keyed = cluster.replay is not None and cluster.replay.unkeyed == 0 and cluster.replay.events > 0
    if policy is not None and "compact" in policy and not is_keyed:
        message = f"{CLEANUP_POLICY} is {policy}: events have no keys, so the topic cannot be compacted"
        yield Finding(code, METADATA_TOPIC, message, _evidence(topic, CLEANUP_POLICY, "delete"))


def _compactable(topic: MetadataTopicFacts, cluster: ClusterSnapshot) -> Iterator[Finding]:
    """How far the topic is from KIP-1266's compaction: a compacted topic refuses new records without a key, and keeps
    those that it has."""
    replay = cluster.replay
    if replay is None or replay.unkeyed is None or not replay.events:
        return
    keyed = replay.events - replay.unkeyed
    policy = topic.settings.get(CLEANUP_POLICY)
    version = cluster.remote_log_metadata_version
    evidence: dict[str, object] = {
        "records": replay.events,
        "keyed": keyed,
        "unkeyed": replay.unkeyed,
        "cleanupPolicy": policy,
        "remoteLogMetadataVersion": version,
    }
    state = f"{keyed} of {replay.events} records have keys; {CLEANUP_POLICY} is {policy}"
    if replay.unkeyed:
        message = f"{state}: it cannot be compacted while it has records without keys"
    else:
        message = f"{state}: no record without a key prevents compaction"
    writes = "no release up to 4.4 writes keys" if version is None else f"remote.log.metadata.version is {version}"
    yield Finding(FindingCode.METADATA_TOPIC_COMPACTION, METADATA_TOPIC, f"{message}; {writes} (KIP-1266)", evidence)


def _bloat(cluster: ClusterSnapshot) -> Iterator[Finding]:
    replay = cluster.replay
    if replay is not None and replay.seconds > SLOW_REPLAY_SECONDS and replay.dead_ratio > MOSTLY_DEAD:
        dead = f"{replay.dead_ratio:.0%} of {replay.events} events are about deleted segments"
        evidence: dict[str, object] = {
            "events": replay.events,
            "deadRatio": replay.dead_ratio,
            "replaySeconds": replay.seconds,
        }
        message = f"{dead}; a starting broker needs about {replay.seconds:.0f} s to replay all events"
        yield Finding(FindingCode.METADATA_TOPIC_BLOATED, METADATA_TOPIC, message, evidence)


def _evidence(topic: MetadataTopicFacts, name: str, wanted: str) -> dict[str, object]:
    return {"topic": METADATA_TOPIC, "name": name, "stated": topic.settings.get(name), "value": wanted}


MOST_NAMED = 100
_MOVING = frozenset({"compact", "delete"})
_LIVE = frozenset({RemoteLogSegmentState.COPY_SEGMENT_FINISHED, RemoteLogSegmentState.COPY_SEGMENT_STARTED})


class _Expiring(NamedTuple):
    """A segment whose events have no keys, and from when on its newest one may be deleted (ms)."""

    expires_ms: int
    partition: TopicIdPartition
    segment_id: str


def expiring_events(topic: MetadataTopicFacts, cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Live segments that lose their metadata, and when, while the topic both compacts and deletes.

    A segment counts if its newest event is not after its metadata partition's last record without a key. Of a copy that
    began before the first key and ended after it, only the beginning is at risk: it is not counted.
    """
    retention = as_number(topic.settings.get(RETENTION_MS))
    policy = {one.strip() for one in (topic.settings.get(CLEANUP_POLICY) or "").split(",")}
    if policy != _MOVING or retention is None or retention < 0 or cluster.replay is None or not cluster.replay.unkeyed:
        return
    expiring = list(_expiring(cluster, retention))
    if not expiring:
        return
    first = nsmallest(MOST_NAMED, expiring)
    gone = sum(one.expires_ms <= cluster.clock.now_ms for one in expiring)
    evidence: dict[str, object] = {
        "topic": METADATA_TOPIC,
        "name": RETENTION_MS,
        "stated": str(retention),
        "value": "-1",
        "liveSegments": len(expiring),
        "overdue": gone,
        "firstExpiresMs": first[0].expires_ms,
        "lastExpiresMs": max(one.expires_ms for one in expiring),
        "segments": [
            {"topicIdPartition": str(one.partition), "segmentId": one.segment_id, "expiresMs": one.expires_ms}
            for one in first
        ],
    }
    segments = counted(len(expiring), "live segment has", "live segments have")
    message = (
        f"{segments} only events without keys, which {RETENTION_MS}={retention} deletes; {gone} of them from now on"
    )
    yield Finding(FindingCode.METADATA_EVENTS_EXPIRE, METADATA_TOPIC, message, evidence)


def _expiring(cluster: ClusterSnapshot, retention: int) -> Iterator[_Expiring]:
    assert cluster.replay is not None
    until = cluster.replay.last_unkeyed
    for store in cluster.stores:
        for partition, segment in store.segments():
            if segment.metadata.state in _LIVE and segment.metadata_offset <= until.get(segment.metadata_partition, -1):
                expires_ms = segment.metadata.event_timestamp_ms + retention
                yield _Expiring(expires_ms, partition, segment.metadata.segment_id)

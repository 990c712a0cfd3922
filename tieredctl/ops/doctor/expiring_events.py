"""Events without keys that a metadata topic's retention deletes though their segments live.

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
from tieredctl.ops.cluster.topic_settings import CLEANUP_POLICY, RETENTION_MS
from tieredctl.ports.metadata_source import METADATA_TOPIC

MOST_NAMED = 100
_MOVING = frozenset({"compact", "delete"})
_LIVE = frozenset({RemoteLogSegmentState.COPY_SEGMENT_FINISHED, RemoteLogSegmentState.COPY_SEGMENT_STARTED})


class _Expiring(NamedTuple):
    """A segment whose events have no keys, and from when on its newest one may be deleted (ms)."""

    expires_ms: int
    partition: TopicIdPartition
    segment_id: str


def expiring_events(topic: MetadataTopicFacts, cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Which live segments lose their metadata, and when, while the topic both compacts and deletes.

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
    said = counted(len(expiring), "live segment has", "live segments have")
    message = f"{said} only events without keys, which {RETENTION_MS}={retention} deletes; {gone} of them from now on"
    yield Finding(FindingCode.METADATA_EVENTS_EXPIRE, METADATA_TOPIC, message, evidence)


def _expiring(cluster: ClusterSnapshot, retention: int) -> Iterator[_Expiring]:
    assert cluster.replay is not None
    until = cluster.replay.last_unkeyed
    for store in cluster.stores:
        for partition, known in store.segments():
            if known.metadata.state in _LIVE and known.metadata_offset <= until.get(known.metadata_partition, -1):
                expires_ms = known.metadata.event_timestamp_ms + retention
                yield _Expiring(expires_ms, partition, known.metadata.segment_id)

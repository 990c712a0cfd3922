"""How much brokers may delete at once when a topic is no longer tiered, and how to empty remote storage without that.

From 3.9 (KIP-950) to 4.3.1, and when a tiered topic is deleted since 3.6, leaders delete remote segments in the thread
that applies cluster metadata (DynamicConfigPublisher, ReplicaManager.applyDelta; RemoteLogManager.stopPartitions): one
segment after the other, and until the last is deleted the broker applies no new leader, topic or setting. It first
writes events and waits for them: if the leader of their metadata partition dies meanwhile, waiting brokers cannot take
over.

Measured with one 4.3.1 broker on a busy machine, from the first event of a deletion to the last, in that thread (its
stack was looked at): 100 segments take 0.11 s in Kafka's LocalTieredStorage, which is 1 ms each, and 5.4 s in a store
that takes 50 ms to delete one, which is 54 ms each. So a broker adds next to nothing: the store's own time counts.
"""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.pasteable import pasteable
from tieredctl.ops.cluster.topic_settings import RETENTION_BYTES, RETENTION_MS, TopicSettings
from tieredctl.ports.cluster import TopicDescription

MOST_SEGMENTS = 200
"""For one topic. If the store takes 0.1 s for the objects of each, brokers apply no cluster metadata for 20 s."""


def deletes_too_much(topic: TopicDescription, segments: int, *, at_once: bool) -> Finding | None:
    """The finding that leaders would delete too many segments while they apply no metadata: an error, unless asked
    for."""
    if segments <= MOST_SEGMENTS:
        return None
    message = (
        f"leaders would delete {segments} segments one by one and apply no cluster metadata until they are done; "
        f"if a leader of the metadata topic fails meanwhile, the cluster stands still. More than {MOST_SEGMENTS} "
        f"segments need --at-once"
    )
    evidence = {"topic": topic.topic, "segments": segments, "mostSegments": MOST_SEGMENTS}
    severity = Severity.WARNING if at_once else None
    return Finding(FindingCode.TOPIC_DISABLE_AT_ONCE, f"topic {topic.topic}", message, evidence, severity)


def steps_of_emptying(settings: TopicSettings) -> list[str]:
    """How to let retention empty remote storage first, in brokers' background threads, and what to watch."""
    named, kept_ms, total_ms = {"topic": settings.topic}, settings.local_retention_ms, settings.number(RETENTION_MS)
    wanted = str(kept_ms) if kept_ms > 0 and not 0 <= total_ms <= kept_ms else "MS"
    estimate = pasteable(f"tieredctl estimate retention {{topic}} --retention-ms {wanted} …", named)
    status = pasteable("tieredctl topic status {topic} …", named)
    alter = pasteable("kafka-configs --bootstrap-server … --alter --entity-type topics --entity-name {topic}", named)
    back = ",".join(f"{one}={settings.text(one)}" for one in (RETENTION_MS, RETENTION_BYTES))
    return [
        pasteable("tieredctl topic disable {topic} --stop-copying --apply …", named),
        f"See what the next step deletes, also on local disks: {estimate}",
        f"{alter} --add-config retention.ms={wanted}; in several steps if that deletes too much at once.",
        f"Wait until at most {MOST_SEGMENTS} segments are in remote storage: {status}",
        pasteable("tieredctl topic disable {topic} --delete --apply …", named),
        f"{alter} --add-config {back}",
    ]

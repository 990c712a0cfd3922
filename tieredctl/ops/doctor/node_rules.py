"""The settings of a live cluster's brokers and controllers: of each alone, and of all together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.local_log import LocalReplica
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import bug_findings
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import COPY_DISABLE, RETENTION_BYTES
from tieredctl.ops.doctor.broker_rules import broker_findings, tiering_off

_OF_A_TOPIC_TO_BE_MADE = (
    FindingCode.BROKER_CONFIG_METADATA_REPLICATION,
    FindingCode.BROKER_CONFIG_METADATA_MIN_ISR,
    FindingCode.BROKER_CONFIG_METADATA_RETENTION,
)

_TIERING_OFF = FindingCode.BROKER_CONFIG_TIERING_OFF


def node_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Findings for all nodes that report their settings. What several have in common is reported once."""
    yield from _together(cluster)
    if cluster.controllers_apart:
        nodes = ", ".join(map(str, cluster.controllers_apart))
        why = f"{nodes}: brokers do not report their settings. Check their files: tieredctl doctor config FILE"
        # Controllers without it refuse to enable a topic: where one is tiered, they did not.
        severity = Severity.INFO if cluster.topics else None
        yield Finding(
            FindingCode.CHECK_NOT_MADE, "controllers", why, {"nodeIds": list(cluster.controllers_apart)}, severity
        )


def node_in_cluster(node: BrokerSettings, cluster: ClusterSnapshot) -> list[Finding]:
    """Findings for one node's settings, given the cluster's topics."""
    uses_tiering = bool(cluster.topics) or any(one.is_true(names.SYSTEM_ENABLE) for one in cluster.brokers.values())
    findings = broker_findings(node)
    if uses_tiering:
        findings = [tiering_off(node, Severity.ERROR) if one.code == _TIERING_OFF else one for one in findings]
    kept = [one for one in findings if not (cluster.has_metadata_topic and one.code in _OF_A_TOPIC_TO_BE_MADE)]
    return [*kept, *_metadata_partitions(node, cluster)]


def _metadata_partitions(node: BrokerSettings, cluster: ClusterSnapshot) -> Iterator[Finding]:
    """The partition count that a node is configured with against the metadata topic's own."""
    configured = node.metadata_number(names.METADATA_PARTITIONS) if node.uses_topic_based_metadata else None
    if configured is None or cluster.metadata_topic is None or not node.is_true(names.SYSTEM_ENABLE):
        return
    there = len(cluster.metadata_topic.description.partitions)
    if configured != there:
        name = node.metadata_name(names.METADATA_PARTITIONS)
        evidence = {"name": name, "stated": node.values.get(name), "value": str(there)}
        partitions = counted(there, "partition")
        message = f"the metadata topic has {partitions}, but {name} is {configured}"
        yield Finding(FindingCode.BROKER_CONFIG_METADATA_PARTITIONS, node.subject, message, evidence)


def _together(cluster: ClusterSnapshot) -> Iterator[Finding]:
    alike: dict[tuple[str, str], list[tuple[int, Finding]]] = {}
    for number, node in cluster.brokers.items():
        for finding in node_in_cluster(node, cluster):
            alike.setdefault((finding.code, finding.message), []).append((number, finding))
    for same in alike.values():
        nodes = [number for number, _ in same]
        subject = f"broker {nodes[0]}" if len(nodes) == 1 else f"brokers {', '.join(map(str, nodes))}"
        yield replace(same[0][1], subject=subject, evidence={**same[0][1].evidence, "brokerIds": nodes})


_PRODUCTION_READY = (3, 9)


def release_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Whether the release is known, the same everywhere, finalized, ready for production, and which bugs it has."""
    yield from _differences(cluster)
    if cluster.release is None:
        message = "the release cannot be determined from the brokers' metadata versions"
        yield Finding(FindingCode.RELEASE_UNKNOWN, "the cluster", message)
        return
    evidence: dict[str, object] = {"release": str(cluster.release)}
    if cluster.release.line < _PRODUCTION_READY:
        message = f"Kafka {cluster.release}: tiered storage was in early access before 3.9"
        yield Finding(FindingCode.RELEASE_EARLY_ACCESS, "the cluster", message, evidence)
    has_size_retention = any(
        topic.is_known(RETENTION_BYTES) and topic.number(RETENTION_BYTES) >= 0 for topic in cluster.topics.values()
    )
    yield from bug_findings(cluster.release, has_size_retention=has_size_retention)


def _differences(cluster: ClusterSnapshot) -> Iterator[Finding]:
    lines = {broker: str(release) for broker, release in cluster.broker_releases.items() if release is not None}
    if len(set(lines.values())) > 1:
        releases = ", ".join(f"broker {broker} runs {line}" for broker, line in lines.items())
        yield Finding(
            FindingCode.RELEASE_MIXED, "the cluster", releases, {"releases": {str(key): lines[key] for key in lines}}
        )
    finalized, oldest = cluster.finalized_release, min(lines.values(), default=None)
    if finalized is not None and oldest is not None and str(finalized) != oldest and len(set(lines.values())) == 1:
        message = f"brokers run {oldest}, but the metadata version is that of {finalized}: newer features are off"
        evidence = {"release": oldest, "finalized": str(finalized)}
        yield Finding(FindingCode.RELEASE_MIXED, "the cluster", message, evidence, Severity.INFO)


def disk_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """The findings about every replica of a tiered partition."""
    facts = {one.partition: one for one in cluster.partitions}
    for replica in cluster.replicas or ():
        partition_facts = facts.get(replica.partition)
        if partition_facts is not None and not cluster.topics[replica.partition.topic].is_true(COPY_DISABLE):
            yield from _without_snapshot(replica, partition_facts)


def _without_snapshot(replica: LocalReplica, facts: PartitionFacts) -> Iterator[Finding]:
    """Segments that are not copied yet and have no producer snapshot at their end: the leader takes one for granted
    (RemoteLogManager.copyLogSegment), writes that the copy began, and fails, again and again."""
    tiered_end = -1 if facts.tiered_end is None else facts.tiered_end
    from_offset = max(tiered_end + 1, facts.earliest or 0)
    waiting = [(one, later.base_offset) for one, later in pairwise(replica.segments) if later.base_offset > from_offset]
    missing = [(one, end) for one, end in waiting if end not in replica.snapshot_offsets]
    if missing:
        partition = replica.partition
        (first, _), (_, behind) = missing[0], missing[-1]
        evidence = {
            "topic": partition.topic,
            "topicId": partition.topic_id,
            "partition": partition.partition,
            "logDir": replica.folder,
            "offsets": [first.base_offset, behind - 1],
            "segments": len(missing),
            "bytes": sum(one.size for one, _ in missing),
            "deleteRecordsOffset": behind,
        }
        segments = counted(len(missing), "segment has", "segments have")
        message = (
            f"{segments} no producer snapshot (offsets {first.base_offset} to {behind - 1}): "
            "while this broker leads, neither they nor later segments are tiered"
        )
        yield Finding(
            FindingCode.PRODUCER_SNAPSHOT_MISSING,
            f"{partition.topic}-{partition.partition} in {replica.folder}",
            message,
            evidence,
        )

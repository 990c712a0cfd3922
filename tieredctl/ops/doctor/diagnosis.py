"""`doctor` and `doctor config`: all rules, applied to configuration files or to a live cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import SYSTEM_ENABLE, BrokerSettings
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import (
    REMOTE_STORAGE_ENABLE,
    RETENTION_MS,
    TopicSettings,
    topic_defaults,
)
from tieredctl.ops.doctor.broker_rules import broker_findings, metadata_retention
from tieredctl.ops.doctor.copy_quota_rules import copy_quota_findings
from tieredctl.ops.doctor.fetch_quota_rules import fetch_quota_findings
from tieredctl.ops.doctor.looking import GROUPS, METADATA_RECORDS, OFFSETS, TOPIC_SETTINGS
from tieredctl.ops.doctor.metadata_topic_rules import metadata_topic_findings
from tieredctl.ops.doctor.node_rules import disk_findings, node_findings, node_in_cluster, release_findings
from tieredctl.ops.doctor.partition_rules import partition_findings
from tieredctl.ops.doctor.quorum_rules import quorum_findings
from tieredctl.ops.doctor.topic_rules import topic_findings
from tieredctl.ops.documents import Document
from tieredctl.ports.cluster import CommittedOffset
from tieredctl.ports.manager_settings import manager_of

_METADATA_RETENTION = FindingCode.BROKER_CONFIG_METADATA_RETENTION


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was checked, and the findings, most severe first."""

    looked_at: Document
    findings: list[Finding]

    def summary(self) -> Document:
        """What was checked, how much was found, and what was not checked and why."""
        skipped = [finding for finding in self.findings if finding.code is FindingCode.CHECK_NOT_MADE]
        return {
            **self.looked_at,
            "findings": len(self.findings),
            "complete": not any(one.kind.incomplete and one.severity is not Severity.INFO for one in self.findings),
            "notLookedAt": [f"{finding.subject}: {finding.message}" for finding in skipped],
        }


def diagnose_file(
    node: BrokerSettings, topic: Mapping[str, str] | None, cluster: ClusterSnapshot | None = None
) -> Diagnosis:
    """Checks a broker's or controller's properties file, the settings of a topic that is to be tiered, if any, and the
    node's cluster, if it is known."""
    findings = broker_findings(node) if cluster is None else [*cluster.not_looked_at, *node_in_cluster(node, cluster)]
    if node.is_true(SYSTEM_ENABLE) and not node.is_only_controller:
        findings += custom_metadata_findings(node, () if cluster is None else cluster.topics)
    if topic is not None:
        stated = {REMOTE_STORAGE_ENABLE: "true", **topic_defaults(node), **topic}
        settings = TopicSettings("TOPIC", stated, node.release)
        findings += topic_findings(settings)
        if _METADATA_RETENTION not in {finding.code for finding in findings}:
            findings += metadata_retention(node, [("this topic", settings.number(RETENTION_MS))])
    looked_at = {"release": None if node.release is None else str(node.release), "settings": len(node.values)}
    return Diagnosis(looked_at, ordered(findings))


def diagnose_settings(cluster: ClusterSnapshot) -> Diagnosis:
    """Checks only a live cluster's settings."""
    return Diagnosis(_looked_at(cluster), ordered(_of_settings(cluster)))


def diagnose(cluster: ClusterSnapshot) -> Diagnosis:
    """Checks everything of a live cluster."""
    findings = [
        *release_findings(cluster),
        *_of_settings(cluster),
        *cluster.odd,
        *partition_findings(cluster),
        *copy_quota_findings(cluster),
        *fetch_quota_findings(cluster),
        *disk_findings(cluster),
        *quorum_findings(cluster),
        *group_findings(cluster),
        *(cluster.objects.findings if cluster.objects else ()),
    ]
    return Diagnosis(_looked_at(cluster), ordered(findings))


def diagnose_standstill(standstill: Finding) -> Diagnosis:
    """The only findings for a cluster whose brokers stopped applying its metadata: their other answers are outdated."""
    why = "brokers that stopped applying metadata give outdated answers; run it again once they apply metadata"
    return Diagnosis(
        {"standstill": standstill.subject},
        [standstill, Finding(FindingCode.CHECK_NOT_MADE, "all other checks", why)],
    )


def _of_settings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    yield from cluster.not_looked_at
    yield from node_findings(cluster)
    yield from metadata_topic_findings(cluster)
    for settings in cluster.topics.values():
        yield from topic_findings(settings)


def _looked_at(cluster: ClusterSnapshot) -> Document:
    replay, objects = cluster.replay, cluster.objects
    unseen = {finding.subject for finding in cluster.not_looked_at}
    sees_topics, sees_records = TOPIC_SETTINGS not in unseen, METADATA_RECORDS not in unseen
    sees_partitions = sees_topics and OFFSETS not in unseen
    segments = sum(len(facts.segments) for facts in cluster.partitions)
    return {
        "release": None if cluster.release is None else str(cluster.release),
        "brokers": len(cluster.brokers) or None,
        "voters": None if cluster.quorum is None else len(cluster.quorum.voters),
        "topics": len(cluster.topics) if sees_topics else None,
        "partitions": len(cluster.partitions) if sees_partitions else None,
        "remoteSegments": segments if sees_partitions and sees_records else None,
        "metadataEvents": replay and replay.events,
        "deadRatio": replay and replay.dead_ratio,
        "replaySeconds": replay and replay.seconds,
        "groupOffsets": None if GROUPS in unseen else len(cluster.group_offsets),
        "replicasOnDisk": None if cluster.replicas is None else len(cluster.replicas),
        "auxiliaryObjects": objects and objects.auxiliary,
        "transactionIndexes": objects and objects.indexes_read,
        "transactionIndexesTooLong": objects and objects.indexes_passed_over,
    }


def ordered(findings: list[Finding] | Iterator[Finding]) -> list[Finding]:
    """Most severe first; otherwise in the order found. A finding of two rules is shown once."""
    unique = {(finding.code, finding.subject, finding.message): finding for finding in findings}
    return sorted(unique.values(), key=lambda finding: -finding.severity)


LONGEST_TOPIC_NAME = 249


def custom_metadata_findings(settings: BrokerSettings, topics: Iterable[str]) -> Iterator[Finding]:
    """Finds given topics that could not be copied; without topics, whether every name that Kafka allows fits."""
    manager, limit = manager_of(settings.text(names.STORAGE_CLASS)), settings.number(names.CUSTOM_METADATA_MAX_BYTES)
    if manager is None or limit is None:
        return
    prefix = settings.text(names.STORAGE_PREFIX) or ""
    own = {name.removeprefix(prefix): value or "" for name, value in settings.values.items() if name.startswith(prefix)}
    longest_topic = max(topics, key=len, default=None)
    length = LONGEST_TOPIC_NAME if longest_topic is None else len(longest_topic)
    largest = manager.largest_custom_metadata(own, length)
    if largest is not None and largest > limit:
        whose = f"a topic name of {length} characters" if longest_topic is None else f"topic {longest_topic}"
        message = (
            f"up to {largest} bytes of custom metadata ({whose}), but {names.CUSTOM_METADATA_MAX_BYTES} is {limit}"
        )
        evidence = {
            "name": names.CUSTOM_METADATA_MAX_BYTES,
            "stated": settings.values.get(names.CUSTOM_METADATA_MAX_BYTES),
            "value": str(largest),
        }
        yield Finding(FindingCode.BROKER_CONFIG_CUSTOM_METADATA, settings.subject, message, evidence)


_Behind = tuple[CommittedOffset, PartitionFacts]


def group_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """A finding for each group and tiered topic whose committed offsets are in remote storage only, or deleted."""
    facts = {(one.partition.topic, one.partition.partition): one for one in cluster.partitions}
    expired: dict[tuple[str, str], list[_Behind]] = defaultdict(list)
    tiered: dict[tuple[str, str], list[_Behind]] = defaultdict(list)
    for committed in cluster.group_offsets:
        partition_facts = facts.get((committed.topic, committed.partition))
        if partition_facts is None or partition_facts.earliest is None:
            continue
        if committed.offset < partition_facts.earliest:
            expired[committed.group, committed.topic].append((committed, partition_facts))
        elif partition_facts.earliest_local is not None and committed.offset < partition_facts.earliest_local:
            tiered[committed.group, committed.topic].append((committed, partition_facts))
    for (group, topic), behind in expired.items():
        lost = sum((partition_facts.earliest or 0) - committed.offset for committed, partition_facts in behind)
        lost_offsets = counted(lost, "offset was", "offsets were")
        message = f"its offsets in {_partitions(behind)} are below the log start: {lost_offsets} deleted unread"
        yield _finding(FindingCode.GROUP_OFFSET_BELOW_LOG_START, group, topic, message, behind)
    for (group, topic), behind in tiered.items():
        remote = sum((partition_facts.earliest_local or 0) - committed.offset for committed, partition_facts in behind)
        offsets = counted(remote, "offset lies", "offsets lie")
        message = f"it reads {_partitions(behind)} from remote storage: {offsets} before the local logs"
        yield _finding(FindingCode.GROUP_READS_REMOTE, group, topic, message, behind)


def _partitions(behind: Sequence[_Behind]) -> str:
    return counted(len(behind), "partition")


def _finding(code: FindingCode, group: str, topic: str, message: str, behind: Sequence[_Behind]) -> Finding:
    partitions = [
        {
            "partition": committed.partition,
            "committedOffset": committed.offset,
            "earliest": facts.earliest,
            "earliestLocal": facts.earliest_local,
        }
        for committed, facts in behind
    ]
    return Finding(
        code, f"group {group}, topic {topic}", message, {"group": group, "topic": topic, "partitions": partitions}
    )

"""`topic enable`: what it checks, what it sets, and what that costs.

What a topic had in remote storage before it was untiered: Kafka never copies that again.

RLMCopyTask begins after the highest offset that was ever copied (findHighestRemoteOffset), and no deletion lowers that.
Neither does it lower UnifiedLog's highestOffsetInRemoteStorage: ListOffsets answers it as the latest tiered offset as
soon as the topic is tiered again, and local retention deletes up to there. Seen with Kafka 3.9.1 and 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalReplica
from tieredctl.model.prices import StoragePrice
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.cluster import topic_settings as names
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS, demand_topic_based
from tieredctl.ops.cluster.release import KNOWN_BUGS
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import RETENTION_BYTES, RETENTION_MS, TopicSettings, copy_lag
from tieredctl.ops.doctor.gathering import gather_settings
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.doctor.metadata_topic_rules import metadata_topic_findings
from tieredctl.ops.doctor.node_rules import disk_findings, node_findings, release_findings
from tieredctl.ops.doctor.topic_rules import topic_findings
from tieredctl.ops.documents import Document
from tieredctl.ops.tiering.config_change import ConfigChange, config_change, is_tiered, refusals
from tieredctl.ops.tiering.copy_estimate import CopyEstimate, copy_estimate, first_kept_offsets
from tieredctl.ops.tiering.partition_bytes import (
    PartitionBytes,
    read_partition_bytes,
    waiting_by_partition,
    with_closed_segments,
)
from tieredctl.ops.tiering.remote_topic import RemoteTopic
from tieredctl.ports.cluster import Cluster, ConfigValue, TopicDescription, settings_of
from tieredctl.ports.metadata_source import METADATA_TOPIC

NEVER_TIERED = frozenset(
    {METADATA_TOPIC, "__cluster_metadata", "__consumer_offsets", "__transaction_state", "__share_group_state"}
)
"""UnifiedLog.isRemoteLogEnabled ignores these whatever their settings, and no validation refuses them."""
_DELETES_BY_SIZE = frozenset(bug.issue for bug in KNOWN_BUGS if bug.deletes_by_size)


@dataclass(frozen=True, slots=True)
class LocalRetention:
    """The wanted local retention, in ms and bytes; None leaves it as it is, -2 is total retention."""

    ms: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class EnablePlan:
    """What is to be set, what speaks against it, most severe first, and what it costs; no estimate if nothing
    changes."""

    change: ConfigChange
    findings: Sequence[Finding] = ()
    estimate: CopyEstimate | None = None
    partitions: Sequence[PartitionBytes] = ()
    closed: Sequence[int] = ()
    """The partitions that may have a closed segment to copy."""
    waiting_bytes: int | None = 0
    """How many of the bytes to copy wait for the copy lag; None where unknown."""
    shows_first_segment: bool = True
    """Whether the latest tiered offset can distinguish a first segment from what was copied before."""

    @property
    def begins_copying(self) -> bool:
        """Whether the topic is copied after the change, and was not before."""
        return not {names.REMOTE_STORAGE_ENABLE, names.COPY_DISABLE}.isdisjoint(self.change.changes)

    @property
    def is_refused(self) -> bool:
        """Whether something was found that must be fixed first."""
        return any(finding.severity >= Severity.ERROR for finding in self.findings)

    def summary(self, price: StoragePrice | None) -> Document:
        """The summary of every output format, without the findings; with the cost, if there is a price."""
        topic = self.change.topic
        estimate = None if self.estimate is None else self.estimate.document(price)
        if estimate is not None:
            estimate["waitingBytes"] = self.waiting_bytes
            if price is not None:
                saved = None if self.waiting_bytes is None else price.monthly_cost(self.waiting_bytes)
                estimate["copyLagSavesPerMonth"] = saved
        return {"topic": topic.topic, "topicId": topic.topic_id, **self.change.document(), "estimate": estimate}


def plan_enable(
    cluster: Cluster,
    remote: RemoteTopic,
    wanted: LocalRetention,
    replicas: Sequence[LocalReplica] | None,
    now_ms: int,
) -> EnablePlan:
    """Plans to tier a topic, or to copy it again where copying was stopped. Changes nothing.

    `replicas` are those in the log directories, None where none was given. Raises TieredctlError as the cluster does.
    """
    topic, name = remote.topic, remote.topic.topic
    before = settings_of(cluster, name)
    change = config_change(topic, before, _wanted(before, wanted))
    if change.is_empty:
        return EnablePlan(change)
    snapshot = gather_settings(cluster, Clock(now_ms, 0), None)
    looking = Looking()
    is_read = read_copied_before(remote, snapshot, looking)
    partitions = with_copied_before(read_partition_bytes(cluster, topic, looking), remote)
    after = change.settings_after(snapshot.release)
    planned = replace(snapshot, topics={**snapshot.topics, name: after})
    checks = _checks(snapshot, planned, topic)
    findings = [
        *checks,
        *looking.findings,
        *never_copied(remote, partitions, after),
        *_disks(planned, topic, partitions, replicas),
        *refusals(cluster, change),
    ]
    kept = first_kept_offsets(cluster, topic, after, now_ms)
    estimate = copy_estimate(partitions, after, snapshot.brokers, kept)
    waiting = waiting_by_partition(cluster, topic, copy_lag(after), partitions, now_ms)
    closed = with_closed_segments(cluster, topic, after, partitions, waiting, now_ms)
    return EnablePlan(
        change,
        sorted(findings, key=lambda finding: -finding.severity),
        estimate,
        partitions,
        closed,
        known_sum(waiting.values()),
        is_read or is_tiered(before),
    )


def _wanted(before: Mapping[str, ConfigValue], local: LocalRetention) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {names.REMOTE_STORAGE_ENABLE: "true", names.COPY_DISABLE: None}
    if not is_tiered(before):
        # The setting that let an earlier disable delete would let the next one delete without being asked.
        wanted[names.DELETE_ON_DISABLE] = None
    for name, value in ((names.LOCAL_RETENTION_MS, local.ms), (names.LOCAL_RETENTION_BYTES, local.bytes)):
        if value is not None:
            wanted[name] = str(value)
    return wanted


def _checks(snapshot: ClusterSnapshot, planned: ClusterSnapshot, topic: TopicDescription) -> Iterator[Finding]:
    """Findings for the cluster as it is, and as it would be with this topic tiered."""
    after = planned.topics[topic.topic]
    yield from snapshot.not_looked_at
    if topic.topic in NEVER_TIERED:
        message = "Kafka never tiers this internal topic, though it accepts the setting"
        yield Finding(FindingCode.TOPIC_NEVER_TIERED, f"topic {topic.topic}", message, {"topic": topic.topic})
    yield from _release(planned, after)
    for finding in node_findings(planned):
        # A tiered topic proves that the controllers allow it; this one is not tiered yet.
        unproven = finding.code is FindingCode.CHECK_NOT_MADE and not snapshot.topics
        yield replace(finding, severity_override=None) if unproven else finding
    yield from metadata_topic_findings(planned)
    yield from topic_findings(after)
    yield from leaderless(topic, Severity.WARNING)


def _release(planned: ClusterSnapshot, after: names.TopicSettings) -> Iterator[Finding]:
    """The findings about the release: of its known bugs, those that delete what this topic's retention.bytes should
    keep."""
    for finding in release_findings(replace(planned, topics={after.topic: after})):
        concerns_it = finding.subject in _DELETES_BY_SIZE and finding.severity > Severity.INFO
        if finding.code is not FindingCode.RELEASE_BUG or concerns_it:
            yield finding


def leaderless(topic: TopicDescription, severity: Severity) -> Iterator[Finding]:
    """The finding that partitions have no leader to copy or delete for them."""
    without = [one.partition for one in topic.partitions if one.leader is None]
    if without:
        message = f"partitions without a leader: {', '.join(map(str, without))}"
        evidence = {"topic": topic.topic, "partitions": without}
        yield Finding(FindingCode.TOPIC_WITHOUT_LEADER, f"topic {topic.topic}", message, evidence, severity)


def _disks(
    planned: ClusterSnapshot,
    topic: TopicDescription,
    partitions: Sequence[PartitionBytes],
    replicas: Sequence[LocalReplica] | None,
) -> Iterator[Finding]:
    own = [one for one in replicas or () if one.partition.topic_id == topic.topic_id]
    if replicas is not None and not own:
        message = "none of the given log directories has a partition of it"
        yield Finding(FindingCode.CHECK_NOT_MADE, f"segments of topic {topic.topic}", message)
    facts = [
        PartitionFacts(
            TopicIdPartition(topic.topic_id, topic.topic, one.partition.partition),
            earliest=one.earliest_local,
            latest_tiered=one.latest_tiered,
        )
        for one in partitions
    ]
    yield from disk_findings(replace(planned, partitions=facts, replicas=own))


_UNKNOWN = (
    ErrorCode.BROKER_REFUSED,
    ErrorCode.METADATA_INCOMPLETE,
    ErrorCode.NO_METADATA_TOPIC,
    ErrorCode.OTHER_METADATA_MANAGER,
)


def read_copied_before(remote: RemoteTopic, snapshot: ClusterSnapshot, looking: Looking) -> bool:
    """Reads the metadata; where that fails, `looking` notes it and False is returned.

    Raises TieredctlError where the cluster does not answer.
    """
    try:
        demand_topic_based(broker.text(METADATA_CLASS) or "" for broker in snapshot.brokers.values())
        if snapshot.has_metadata_topic is not False:
            remote.refresh()
    except TieredctlError as error:
        if error.code not in _UNKNOWN:
            raise
        looking.note("what was in remote storage before", error)
        return False
    return True


def with_copied_before(partitions: Sequence[PartitionBytes], remote: RemoteTopic) -> list[PartitionBytes]:
    """The partitions with what was copied before as the latest tiered offset, where the brokers report none."""
    return [
        replace(one, latest_tiered=remote.highest_copied(one.partition.partition)) if one.latest_tiered is None else one
        for one in partitions
    ]


def never_copied(remote: RemoteTopic, partitions: Sequence[PartitionBytes], after: TopicSettings) -> Iterator[Finding]:
    """The finding that local disks have offsets which were deleted from remote storage. An error where the planned
    local retention deletes them before their time."""
    ranges = [offsets for one in partitions if (offsets := _only_local(one, remote)) is not None]
    if not ranges:
        return
    topic = remote.topic.topic
    is_kept = after.local_retention_ms == after.number(RETENTION_MS) and after.local_retention_bytes == after.number(
        RETENTION_BYTES
    )
    fate = "only local disks keep it" if is_kept else "local retention deletes it before its time"
    message = f"Kafka never copies again what was once deleted from remote storage: {fate}"
    evidence = {"topic": topic, "partitions": ranges}
    yield Finding(
        FindingCode.NEVER_COPIED_AGAIN, f"topic {topic}", message, evidence, Severity.WARNING if is_kept else None
    )


def _only_local(one: PartitionBytes, remote: RemoteTopic) -> dict[str, object] | None:
    """The offsets of a partition that were deleted from remote storage and may still be on its leader's disk."""
    number = one.partition.partition
    deleted = remote.highest_deleted(number)
    if deleted is None:
        return None
    first, last = one.earliest_local or 0, deleted if one.latest is None else min(deleted, one.latest - 1)
    return {"partition": number, "offsets": [first, last]} if first <= last else None

"""The metadata quorum: replicas that lag, snapshots that are overdue, and a log that is not trimmed (KIP-630).

A limit is the brokers' own setting, the largest of them, or Kafka's default; controllers apart do not report theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.kraft.replica import SnapshotId
from tieredctl.kraft.retention import (
    DEFAULT_RETENTION_BYTES,
    DEFAULT_RETENTION_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    KeptSegment,
    KeptSnapshot,
    RetentionLimits,
    expired,
)
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.local_metadata_log import SeenMetadataLog, SeenSnapshot
from tieredctl.model.quantities import duration_text, size_text
from tieredctl.ops.cluster.broker_settings import as_number
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ports.cluster import QuorumDescription, QuorumReplica

FETCH_TIMEOUT_MS, DEFAULT_FETCH_TIMEOUT_MS = "controller.quorum.fetch.timeout.ms", 2000
SESSION_TIMEOUT_MS, DEFAULT_SESSION_TIMEOUT_MS = "broker.session.timeout.ms", 9000
SNAPSHOT_INTERVAL_MS, DEFAULT_SNAPSHOT_INTERVAL_MS = "metadata.log.max.snapshot.interval.ms", 3_600_000
SNAPSHOT_BYTES, DEFAULT_SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots", 20 << 20
_OVERDUE = 2
"""By how many of its intervals a snapshot is late: a node makes the next one as soon as one has passed."""
_CLEANING_TAKES_MS = 600_000
"""A node looks each minute for what it can delete."""


def quorum_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """The findings about the quorum as its leader describes it, and about each metadata log that was looked into."""
    if cluster.quorum is not None:
        yield from _lagging_voters(cluster, cluster.quorum)
        yield from _lagging_observers(cluster, cluster.quorum)
    for log in cluster.metadata_logs:
        yield from _snapshot(cluster, log)
        yield from _untrimmed(cluster, log)
    yield from _not_looked_into(cluster)


def _lagging_voters(cluster: ClusterSnapshot, quorum: QuorumDescription) -> Iterator[Finding]:
    limit = _limit(cluster, FETCH_TIMEOUT_MS, DEFAULT_FETCH_TIMEOUT_MS)
    late = [one for one in quorum.voters if _is_late(one, quorum, limit)]
    in_time, needed = len(quorum.voters) - len(late), len(quorum.voters) // 2 + 1
    for voter in late:
        message = _lag(voter, quorum)
        if in_time <= needed:
            message += f"; {in_time} of {len(quorum.voters)} voters keep up; fewer than {needed} decide nothing"
        yield _lagging(FindingCode.QUORUM_VOTER_LAGS, f"controller {voter.node_id}", message, voter, quorum)


def _lagging_observers(cluster: ClusterSnapshot, quorum: QuorumDescription) -> Iterator[Finding]:
    limit = _limit(cluster, SESSION_TIMEOUT_MS, DEFAULT_SESSION_TIMEOUT_MS)
    for one in quorum.observers:
        if _is_late(one, quorum, limit):
            subject = f"node {one.node_id}"
            yield _lagging(FindingCode.QUORUM_OBSERVER_LAGS, subject, _lag(one, quorum), one, quorum)


def _is_late(replica: QuorumReplica, quorum: QuorumDescription, limit_ms: int) -> bool:
    if replica.node_id == quorum.leader:
        return False
    lag_ms = _lag_ms(replica, quorum)
    # One that never fetched from this leader has no time; it may have been elected a moment ago, but that is rare.
    is_behind = replica.log_end_offset is None or replica.log_end_offset < quorum.high_watermark
    return is_behind if lag_ms is None else lag_ms > limit_ms


def _lag_ms(replica: QuorumReplica, quorum: QuorumDescription) -> int | None:
    """How long ago it had everything, by the leader's clock; None where unknown, and before Kafka 3.3."""
    leaders = next((one.last_caught_up_ms for one in quorum.voters if one.node_id == quorum.leader), None)
    if leaders is None or replica.last_caught_up_ms is None:
        return None
    return max(0, leaders - replica.last_caught_up_ms)


def _lag(replica: QuorumReplica, quorum: QuorumDescription) -> str:
    lag_ms = _lag_ms(replica, quorum)
    if replica.log_end_offset is None:
        return f"it fetched nothing from leader {quorum.leader} since its election (epoch {quorum.leader_epoch})"
    behind = counted(max(0, quorum.high_watermark - replica.log_end_offset), "record")
    if lag_ms is None:
        return f"it is {behind} behind leader {quorum.leader}, and it is not known since when"
    return f"it last had everything {duration_text(lag_ms)} ago, and is {behind} behind leader {quorum.leader}"


def _lagging(
    code: FindingCode,
    subject: str,
    message: str,
    replica: QuorumReplica,
    quorum: QuorumDescription,
) -> Finding:
    evidence = {
        "nodeId": replica.node_id,
        "lagMs": _lag_ms(replica, quorum),
        "logEndOffset": replica.log_end_offset,
        "highWatermark": quorum.high_watermark,
        "leader": quorum.leader,
    }
    return Finding(code, subject, message, evidence)


def _snapshot(cluster: ClusterSnapshot, log: SeenMetadataLog) -> Iterator[Finding]:
    """Age and size of the latest, and whether the next is overdue."""
    latest, now_ms = log.latest_snapshot, cluster.clock.now_ms
    evidence: dict[str, object] = {"nodeId": log.node_id, "where": log.where, "logStartOffset": log.log_start_offset}
    if latest is None:
        since_ms, what = log.first_record_ms, "has no snapshot"
    else:
        since_ms = latest.written_ms
        what = f"has snapshot {latest} of {size_text(latest.size)}"
        evidence |= {"endOffset": latest.end_offset, "epoch": latest.epoch, "bytes": latest.size}
    age_ms = None if since_ms is None else max(0, now_ms - since_ms)
    evidence["ageMs"] = age_ms
    age = "its age is unknown" if age_ms is None else f"{duration_text(age_ms)} old"
    begins = f"the log begins at offset {log.log_start_offset}"
    if latest is None:
        begins += "" if age_ms is None else f", {duration_text(age_ms)} ago"
        message = f"{what}; {begins}"
    else:
        message = f"{what}, {age}; {begins}"
    if overdue := _why_overdue(cluster, log, age_ms):
        yield Finding(FindingCode.METADATA_SNAPSHOT_OVERDUE, _subject(log), f"{message}: {overdue}", evidence)
    else:
        yield Finding(FindingCode.METADATA_SNAPSHOT, _subject(log), message, evidence)


def _why_overdue(cluster: ClusterSnapshot, log: SeenMetadataLog, age_ms: int | None) -> str | None:
    interval = _limit(cluster, SNAPSHOT_INTERVAL_MS, DEFAULT_SNAPSHOT_INTERVAL_MS)
    latest = log.latest_snapshot
    has_more = cluster.quorum is None or latest is None or cluster.quorum.high_watermark > latest.end_offset
    if interval > 0 and has_more and age_ms is not None and age_ms > _OVERDUE * interval:
        return f"a node makes one each {duration_text(interval)} ({SNAPSHOT_INTERVAL_MS})"
    most = _limit(cluster, SNAPSHOT_BYTES, DEFAULT_SNAPSHOT_BYTES)
    after = 0 if latest is None else latest.end_offset
    newer = sum(one.size for one in log.segments or () if one.base_offset >= after)
    if newer > _OVERDUE * most:
        makes = f"a node makes one each {size_text(most)} ({SNAPSHOT_BYTES})"
        return f"{size_text(newer)} of the log is not in one, and {makes}"
    return None


def _untrimmed(cluster: ClusterSnapshot, log: SeenMetadataLog) -> Iterator[Finding]:
    """What a running node would have deleted long ago."""
    limits = RetentionLimits(
        _limit(cluster, RETENTION_MS, DEFAULT_RETENTION_MS), _limit(cluster, RETENTION_BYTES, DEFAULT_RETENTION_BYTES)
    )
    if log.segments is None:
        yield from _begins_too_early(cluster, log, limits)
        return
    segments = [KeptSegment(one.base_offset, one.size) for one in log.segments]
    gone = expired(_kept(log.snapshots), segments, limits, cluster.clock.now_ms - _CLEANING_TAKES_MS)
    if not gone.removals:
        return
    evidence = {
        "nodeId": log.node_id,
        "where": log.where,
        "logStartOffset": log.log_start_offset,
        "snapshots": [str(one) for one in gone.snapshots],
        "segments": gone.segments,
        "bytes": sum(one.what.size for one in gone.removals),
    }
    parts = f"{counted(len(gone.snapshots), 'snapshot')} and {counted(len(gone.segments), 'segment')}"
    message = f"{parts} should be gone by {RETENTION_MS} and {RETENTION_BYTES}: {gone.removals[0].reason}"
    yield Finding(FindingCode.METADATA_LOG_UNTRIMMED, _subject(log), message, evidence)


def _begins_too_early(cluster: ClusterSnapshot, log: SeenMetadataLog, limits: RetentionLimits) -> Iterator[Finding]:
    """By the age of the log's beginning alone: that goes as far back as the oldest snapshot that retention keeps."""
    interval = _limit(cluster, SNAPSHOT_INTERVAL_MS, DEFAULT_SNAPSHOT_INTERVAL_MS)
    if limits.max_age_ms < 0 or interval <= 0 or log.latest_snapshot is None or log.first_record_ms is None:
        return
    age_ms = cluster.clock.now_ms - log.first_record_ms
    if age_ms > limits.max_age_ms + _OVERDUE * interval + _CLEANING_TAKES_MS:
        evidence = {
            "nodeId": log.node_id,
            "where": log.where,
            "logStartOffset": log.log_start_offset,
            "ageMs": age_ms,
        }
        begins = f"the log begins at offset {log.log_start_offset}, {duration_text(age_ms)} ago"
        message = f"{begins}, and should not go back further than {duration_text(limits.max_age_ms)} ({RETENTION_MS})"
        yield Finding(FindingCode.METADATA_LOG_UNTRIMMED, _subject(log), message, evidence)


def _kept(snapshots: Sequence[SeenSnapshot]) -> list[KeptSnapshot]:
    return [KeptSnapshot(SnapshotId(one.epoch, one.end_offset), one.size, one.last_contained_ms) for one in snapshots]


def _not_looked_into(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """The nodes whose snapshots are not known, where those of others are: only its disk shows a follower's."""
    if not cluster.metadata_logs or cluster.quorum is None:
        return
    nodes_with_logs = {log.node_id for log in cluster.metadata_logs}
    nodes = sorted({one.node_id for one in (*cluster.quorum.voters, *cluster.quorum.observers)} - nodes_with_logs)
    if nodes:
        listed = ", ".join(map(str, nodes))
        message = (
            "age and size of the latest snapshot, and the log's start, are unknown: only log directories show them"
        )
        subject = f"node {listed}" if len(nodes) == 1 else f"nodes {listed}"
        yield Finding(FindingCode.METADATA_SNAPSHOT, subject, message, {"nodeIds": nodes})


def _subject(log: SeenMetadataLog) -> str:
    return log.where if log.node_id is None else f"node {log.node_id}"


def _limit(cluster: ClusterSnapshot, name: str, default: int) -> int:
    stated = [as_number(one.values[name]) for one in cluster.brokers.values() if name in one.values]
    return max((one for one in stated if one is not None), default=default)

"""`estimate retention`: which remote and local segments a change of retention, or DeleteRecords, would delete."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog, LocalReplica
from tieredctl.model.size_sum import SizeSum, total_size
from tieredctl.ops.cluster.leader import only_partition, only_partitions, read_leader_log
from tieredctl.ops.cluster.topic_settings import TopicSettings, copy_lag_faults, effective_local, local_retention_fault
from tieredctl.ops.documents import Document
from tieredctl.ops.estimates.local_retention import ExpiredRow, LocalEstimate, local_estimates
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.cluster import (
    Cluster,
    ConfigValue,
    PartitionDescription,
    TopicDescription,
    leader_bytes,
    settings_of,
)
from tieredctl.rlmm.cache import RemoteLogMetadataCache, bytes_from, segments_in_use
from tieredctl.rlmm.remote_retention import ExpiredSegment, Retention, expired_segments


@dataclass(frozen=True, slots=True)
class RetentionChange:
    """What would be set; None for what stays. Retention in ms and bytes, -1 for no limit; for local retention, -2 means
    as the total one."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    before_offset: int | None = None
    """DeleteRecords: the new log start."""
    local_retention_ms: int | None = None
    local_retention_bytes: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is about local disks."""
        return self.local_retention_ms is not None or self.local_retention_bytes is not None


@dataclass(frozen=True, slots=True)
class PartitionEstimate:
    """What would be deleted of a partition, oldest first, and where its log would then begin."""

    partition: int
    log_start_offset: int
    expired: Sequence[ExpiredSegment]
    local: Sequence[LocalEstimate] = ()

    def rows(self, topic: str) -> Iterator[ExpiredRow]:
        """One row per segment, the remote ones first."""
        for metadata, breach in self.expired:
            yield ExpiredRow(
                *(topic, self.partition, "remote", metadata.segment_id, metadata.start_offset, metadata.end_offset),
                *(metadata.known_size, metadata.max_timestamp_ms, breach, None),
            )
        for one in self.local:
            yield from one.rows(topic, self.partition)


@dataclass(frozen=True, slots=True)
class RetentionEstimate:
    """What would be deleted of a topic."""

    topic: TopicDescription
    retention: Retention
    partitions: Sequence[PartitionEstimate]
    local_retention: Retention | None = None
    """The local retention, with -2 resolved; None where local disks were not asked about."""

    def rows(self) -> list[ExpiredRow]:
        """One row per segment, by partition."""
        return [row for partition in self.partitions for row in partition.rows(self.topic.topic)]

    def summary(self) -> Document:
        """The sums of all partitions, and where each log would begin."""
        document: Document = {
            "retentionMs": self.retention.ms,
            "retentionBytes": self.retention.bytes,
            "segments": sum(len(one.expired) for one in self.partitions),
            "bytes": self.size.known,
            "logStartOffsets": {str(one.partition): one.log_start_offset for one in self.partitions},
        }
        if self.local_retention is None:
            return document
        local = [one for partition in self.partitions for one in partition.local]
        return document | {
            "localRetentionMs": self.local_retention.ms,
            "localRetentionBytes": self.local_retention.bytes,
            "localSegments": sum(len(one.due.now) for one in local),
            "localBytes": self.local_size.known,
            "localBytesOnceTiered": self.local_size_once_tiered.known,
        }

    @property
    def size(self) -> SizeSum:
        """The size of the logs of the remote segments."""
        return SizeSum.of(one.metadata.known_size for partition in self.partitions for one in partition.expired)

    @property
    def local_size(self) -> SizeSum:
        """The size of the local segments."""
        return total_size(one.size(one.due.now) for partition in self.partitions for one in partition.local)

    @property
    def local_size_once_tiered(self) -> SizeSum:
        """The size of those that wait for their copies."""
        return total_size(one.size(one.due.once_tiered) for partition in self.partitions for one in partition.local)


def retention_estimate(
    cluster: Cluster,
    stream: EventStream,
    name: str,
    partitions: Collection[int],
    change: RetentionChange,
    now_ms: int,
    *,
    replicas: Sequence[LocalReplica] | None = None,
) -> RetentionEstimate:
    """What the leaders' next passes would delete of some partitions, or all, if the change were made now.

    On disks too where the change is about local retention, or `replicas` (what log directories hold) are given. Raises
    TieredctlError as the cluster does.

    What only a leader's disk has is estimated: local segments of which only some offsets are remote count by the share
    of these.
    """
    topic = only_partitions(cluster.topic(name), partitions) if partitions else cluster.topic(name)
    settings = settings_of(cluster, name)
    retention = Retention(
        _setting(settings, "retention.ms", change.retention_ms),
        _setting(settings, "retention.bytes", change.retention_bytes),
    )
    copies = not _is_true(settings, "remote.log.copy.disable")
    local = _local_retention(settings, change, retention) if copies else retention
    asks_disks = change.is_local or replicas is not None
    if replicas is not None and not any(one.partition.topic_id == topic.topic_id for one in replicas):
        hint = "Give the log directories of the brokers that have its replicas with --log-dir."
        raise TieredctlError(ErrorCode.USAGE, f"No partition of {name} is in these log directories.", hint=hint)
    # Local bytes only matter for a limit in bytes, or where disks are asked about.
    counts_bytes = asks_disks or retention.bytes >= 0
    caches = replayed(stream, Selection.given([name], [topic.topic_id], partitions)).caches
    estimates = []
    for one in topic.partitions:
        tip = TopicIdPartition(topic.topic_id, name, one.partition)
        cache = caches.get(tip, RemoteLogMetadataCache())
        local_bytes = leader_bytes(cluster, name, one) if counts_bytes else 0
        as_it_is = read_leader_log(cluster, only_partition(topic, one.partition)).log
        log = _changed(as_it_is, change, one)
        only_local = max(0, local_bytes - bytes_from(segments_in_use(cache), log.local_log_start_offset).least)
        expired = expired_segments(cache, log, only_local, retention, now_ms)
        disks: Sequence[LocalEstimate] = ()
        if asks_disks:
            own = None if replicas is None else [replica for replica in replicas if replica.partition == tip]
            disks = local_estimates(
                cache,
                log,
                as_it_is.local_log_start_offset,
                local_bytes,
                own,
                retention=local,
                now_ms=now_ms,
                waits_for_copies=copies,
            )
        estimates.append(PartitionEstimate(one.partition, _log_start(log, expired), expired, disks))
    return RetentionEstimate(topic, retention, estimates, local if asks_disks else None)


def _local_retention(settings: Mapping[str, ConfigValue], change: RetentionChange, total: Retention) -> Retention:
    """Local retention, where -2 means as the total one. Raises TieredctlError `usage` for what Kafka refuses."""
    ms = _setting(settings, "local.retention.ms", change.local_retention_ms)
    size = _setting(settings, "local.retention.bytes", change.local_retention_bytes)
    for fault in (
        local_retention_fault("local.retention.ms", ms, "retention.ms", total.ms),
        local_retention_fault("local.retention.bytes", size, "retention.bytes", total.bytes),
    ):
        if fault is not None:
            raise TieredctlError(ErrorCode.USAGE, f"Kafka refuses that: {fault}.", hint="Reduce local retention.")
    stated = {name: one.value for name, one in settings.items()}
    wanted = {"retention.ms": total.ms, "retention.bytes": total.bytes}
    wanted |= {"local.retention.ms": ms, "local.retention.bytes": size}
    after = TopicSettings("", {**stated, **{name: str(value) for name, value in wanted.items()}})
    for name, fault in copy_lag_faults(after):
        raise TieredctlError(ErrorCode.USAGE, f"Kafka refuses that: {fault}.", hint=f"First set {name} to -1 or less.")
    return Retention(effective_local(ms, total.ms), effective_local(size, total.bytes))


def _setting(settings: Mapping[str, ConfigValue], name: str, wanted: int | None) -> int:
    return int(settings[name].value or -1) if wanted is None else wanted


def _is_true(settings: Mapping[str, ConfigValue], name: str) -> bool:
    return name in settings and settings[name].value == "true"


def _changed(log: LeaderLog, change: RetentionChange, partition: PartitionDescription) -> LeaderLog:
    """The log after DeleteRecords."""
    start = change.before_offset
    if start is None or start <= log.log_start_offset:
        return log
    if start > log.end_offset:
        message = f"Partition {partition.partition} ends at offset {log.end_offset}: it cannot begin at {start}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give an offset that the partition has.")
    # The leader truncates its lineage at the new start.
    epochs = [
        (epoch, max(offset, start))
        for (epoch, offset), (_, following) in zip(
            log.leader_epochs, [*log.leader_epochs[1:], (0, log.end_offset + 1)], strict=True
        )
        if following > start
    ]
    local_start = max(log.local_log_start_offset, start)
    return replace(log, log_start_offset=start, local_log_start_offset=local_start, leader_epochs=epochs)


def _log_start(log: LeaderLog, expired: Sequence[ExpiredSegment]) -> int:
    ends = [one.metadata.end_offset + 1 for one in expired]
    return max([log.log_start_offset, *ends])

"""`estimate retention`: which remote segments a change of retention, or DeleteRecords, would delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tieredctl.errors import TieredctlError
from tieredctl.kafka.cluster import Cluster, ConfigValue, PartitionDescription, TopicDescription
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.leader_log import LeaderLog
from tieredctl.ops.documents import Document
from tieredctl.ops.event_stream import EventStream
from tieredctl.ops.explanation.leader import only_partition, read_leader_log
from tieredctl.ops.metadata_state import replayed
from tieredctl.ops.selection import Selection
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.remote_bytes import bytes_from, segments_in_use
from tieredctl.rlmm.remote_retention import ExpiredSegment, Retention, expired_segments


@dataclass(frozen=True, slots=True)
class RetentionChange:
    """What would be set; None for what stays. Retention in ms and bytes, -1 for no limit."""

    retention_ms: int | None = None
    retention_bytes: int | None = None
    before_offset: int | None = None
    """DeleteRecords: the new log start."""


@dataclass(frozen=True, slots=True)
class PartitionEstimate:
    """What would go of a partition, oldest first, and where its log would begin then."""

    partition: int
    log_start_offset: int
    expired: Sequence[ExpiredSegment]

    def rows(self) -> list[Document]:
        """A segment a row."""
        return [
            {
                "partition": self.partition,
                "segmentId": metadata.segment_id,
                "startOffset": metadata.start_offset,
                "endOffset": metadata.end_offset,
                "segmentSizeInBytes": metadata.segment_size_in_bytes,
                "maxTimestampMs": metadata.max_timestamp_ms,
                "breach": breach.value,
            }
            for metadata, breach in self.expired
        ]


@dataclass(frozen=True, slots=True)
class RetentionEstimate:
    """What would go of a topic."""

    topic: TopicDescription
    retention: Retention
    partitions: Sequence[PartitionEstimate]

    def rows(self) -> list[Document]:
        """A segment a row, by partition."""
        return [{"topic": self.topic.topic, **row} for partition in self.partitions for row in partition.rows()]

    def summary(self) -> Document:
        """Of all partitions, and where each log would begin."""
        expired = [one.metadata for partition in self.partitions for one in partition.expired]
        return {
            "retentionMs": self.retention.ms,
            "retentionBytes": self.retention.bytes,
            "segments": len(expired),
            "bytes": sum(metadata.segment_size_in_bytes for metadata in expired),
            "logStartOffsets": {str(one.partition): one.log_start_offset for one in self.partitions},
        }


def retention_estimate(
    cluster: Cluster, stream: EventStream, name: str, partition: int | None, change: RetentionChange, now_ms: int
) -> RetentionEstimate:
    """What the leaders' next passes would delete if the change were made now. Raises TieredctlError as the cluster
    does.

    What a leader has on its disk alone is estimated: local segments of which only some offsets are remote count by the
    share of these.
    """
    topic = cluster.topic(name) if partition is None else only_partition(cluster.topic(name), partition)
    retention = _retention(cluster.topic_configs([name])[name], change)
    sizes = cluster.replica_bytes([name])
    caches = replayed(stream, Selection(name, topic.topic_id, partition)).caches
    partitions = []
    for one in topic.partitions:
        cache = caches.get(TopicIdPartition(topic.topic_id, name, one.partition), RemoteLogMetadataCache())
        local_bytes = sizes.get((name, one.partition), {}).get(-1 if one.leader is None else one.leader, 0)
        log = _changed(read_leader_log(cluster, only_partition(topic, one.partition)).log, change, one)
        only_local = max(0, local_bytes - bytes_from(segments_in_use(cache), log.local_log_start_offset))
        expired = expired_segments(cache, log, only_local, retention, now_ms)
        partitions.append(PartitionEstimate(one.partition, _log_start(log, expired), expired))
    return RetentionEstimate(topic, retention, partitions)


def _retention(settings: Mapping[str, ConfigValue], change: RetentionChange) -> Retention:
    return Retention(
        _setting(settings, "retention.ms") if change.retention_ms is None else change.retention_ms,
        _setting(settings, "retention.bytes") if change.retention_bytes is None else change.retention_bytes,
    )


def _setting(settings: Mapping[str, ConfigValue], name: str) -> int:
    return int(settings[name].value or -1)


def _changed(log: LeaderLog, change: RetentionChange, partition: PartitionDescription) -> LeaderLog:
    """The log after DeleteRecords."""
    start = change.before_offset
    if start is None or start <= log.log_start_offset:
        return log
    if start > log.end_offset:
        message = f"Partition {partition.partition} ends at offset {log.end_offset}: it cannot begin at {start}."
        raise TieredctlError("usage", message, hint="Name an offset that the partition has.")
    # The leader cuts its lineage off at the new start.
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

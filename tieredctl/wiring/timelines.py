"""`metadata segments --timeline`: what is known of partitions' logs, read before the metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.local_logs import read_least_end_offsets, read_local_logs
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.leader import read_leader_log
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.timeline.partition_timeline import KnownLog
from tieredctl.ports.cluster import Cluster, TopicDescription
from tieredctl.wiring.places import MetadataPlace

if TYPE_CHECKING:
    from tieredctl.model.local_log import LocalReplica
    from tieredctl.model.local_metadata_log import SeenMetadataLog


MOST_LEADERS = 16
"""Leaders are asked about so many partitions at most: each takes several requests."""


def known_logs(
    metadata: MetadataPlace, selection: Selection, most_leaders: int = MOST_LEADERS
) -> dict[TopicIdPartition, KnownLog]:
    """The logs of selected partitions: those in the log directories of the metadata, or those that a live cluster's
    leaders report, for a topic of few partitions or one partition of it. None of a point in the past.

    Raises TieredctlError as the places do.
    """
    if metadata.as_of is not None:
        return {}
    if metadata.cluster is not None and selection.topics:
        with metadata.cluster.open() as cluster:
            logs = [_of_leaders(cluster, one, selection, most_leaders) for one in selection.topics]
            return {name: log for of_topic in logs for name, log in of_topic.items()}
    return _on_disks(metadata, selection)


def _on_disks(metadata: MetadataPlace, selection: Selection) -> dict[TopicIdPartition, KnownLog]:
    ends: dict[tuple[str, int], int] = {}
    for log_dir in metadata.log_dirs:
        for name, end in read_least_end_offsets(log_dir).items():
            ends[name] = max(end, ends.get(name, 0))
    return {
        partition: KnownLog(
            log.leader_epochs,
            log.local_start_offset,
            log.log_start_offset,
            ends.get((partition.topic, partition.partition)),
        )
        for partition, log in read_local_logs(metadata.log_dirs).items()
        if selection.has(partition)
    }


def _of_leaders(
    cluster: Cluster, topic: str, selection: Selection, most_leaders: int
) -> dict[TopicIdPartition, KnownLog]:
    try:
        described = cluster.topic(topic)
    except TieredctlError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC:  # deleted; what it left is drawn
            return {}
        raise
    logs = {}
    chosen = [
        one for one in described.partitions if selection.has(TopicIdPartition(described.topic_id, topic, one.partition))
    ]
    for one in chosen if len(chosen) <= most_leaders else ():
        log = _of_leader(cluster, replace(described, partitions=(one,)))
        if log is not None:
            logs[TopicIdPartition(described.topic_id, topic, one.partition)] = log
    return logs


def _of_leader(cluster: Cluster, topic: TopicDescription) -> KnownLog | None:
    """What a partition's leader knows of its log; None where it does not answer, or the user may not ask it."""
    try:
        log = read_leader_log(cluster, topic).log
    except TieredctlError as error:
        if error.code in (ErrorCode.BROKER_UNREACHABLE, ErrorCode.BROKER_REFUSED):
            return None
        raise
    return KnownLog(log.leader_epochs, log.local_log_start_offset, log.log_start_offset, log.end_offset)


def local_replicas(log_dirs: Sequence[Path] | None) -> list[LocalReplica] | None:
    """The user partitions in brokers' log directories; None if no directories are given."""
    if not log_dirs:
        return None
    from tieredctl.kafka.local_logs import read_local_replicas

    return read_local_replicas(log_dirs)


def demand_own(log_dirs: Sequence[Path] | None, cluster_id: str | None) -> None:
    """Raises TieredctlError `another-cluster` for a log directory of another cluster than this, as far as both say."""
    from tieredctl.kafka.local_logs import log_dir_owner

    for log_dir in log_dirs or ():
        owner = log_dir_owner(log_dir).cluster_id
        if None not in (owner, cluster_id) and owner != cluster_id:
            message = f"{log_dir} is of cluster {owner}, not {cluster_id}."
            raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint="Give the log directories of one cluster.")


def local_metadata_logs(log_dirs: Sequence[Path]) -> list[SeenMetadataLog]:
    """The metadata logs in nodes' log directories."""
    from tieredctl.kafka.metadata_log import read_local_metadata_logs

    return read_local_metadata_logs(log_dirs)

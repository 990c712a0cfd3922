"""How many of a topic's bytes to copy wait for its copy lag: about as many stay out of remote storage at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieredctl.ops.cluster.copy_lag import CopyLag, offset_by_time
from tieredctl.ops.tiering.partition_bytes import PartitionBytes
from tieredctl.ports.cluster import Cluster, ListedOffset, TopicDescription


def waiting_by_partition(
    cluster: Cluster, topic: TopicDescription, lag: CopyLag | None, partitions: Sequence[PartitionBytes], now_ms: int
) -> dict[int, int | None]:
    """An estimate in bytes for each partition, None where unknown. Raises TieredctlError as the cluster does."""
    young = cluster.list_offsets(topic, max(0, now_ms - lag.ms)) if lag is not None and lag.ms > 0 else {}
    return {one.partition.partition: 0 if lag is None else _waiting(one, lag, young) for one in partitions}


def _waiting(one: PartitionBytes, lag: CopyLag, young: Mapping[int, ListedOffset]) -> int | None:
    if one.bytes_to_copy is None or one.leader_bytes is None:
        return None
    if lag.ms < 0:
        return lag.waiting(one.bytes_to_copy, 0)
    answer = young.get(one.partition.partition)
    if answer is None or answer.error is not None or one.latest is None:
        return None
    begins = max(one.first_pending, offset_by_time(answer, one.latest))
    return lag.waiting(one.bytes_to_copy, one.share_from(begins, one.leader_bytes))

"""Which partitions may have a closed segment to copy: Kafka has no request for this, but sizes and ages show it.

A segment is closed by its size or its age when something is appended; for a tiered topic, local retention closes
segments too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieredctl.ops.cluster.topic_settings import SEGMENT_BYTES, SEGMENT_MS, TopicSettings
from tieredctl.ops.tiering.partition_bytes import PartitionBytes
from tieredctl.ports.cluster import Cluster, ListedOffset, TopicDescription


def with_closed_segments(
    cluster: Cluster,
    topic: TopicDescription,
    settings: TopicSettings,
    partitions: Sequence[PartitionBytes],
    waiting: Mapping[int, int | None],
    now_ms: int,
) -> list[int]:
    """The partitions with more, or older, uncopied offsets than one segment may hold. Offsets that wait for the copy
    lag (`waiting`, in bytes, None where unknown) do not count. A partition of unknown size may have a closed segment
    too.

    `settings` are those that the topic is to get. Call this before it is tiered: while a broker starts tiering, it does
    not look up offsets by time. Raises TieredctlError as the cluster does.
    """
    largest = _least(settings.number(SEGMENT_BYTES), settings.local_retention_bytes)
    longest_ms = _least(settings.number(SEGMENT_MS), settings.local_retention_ms)
    first_young = cluster.list_offsets(topic, max(0, now_ms - longest_ms))
    return [
        one.partition.partition
        for one in partitions
        if one.bytes_to_copy is None
        or _has_more_than(largest, one, waiting[one.partition.partition])
        or (waiting[one.partition.partition] == 0 and one.bytes_to_copy and _begins_before(one, first_young))
    ]


def _has_more_than(largest: int, one: PartitionBytes, waiting: int | None) -> bool:
    return waiting is not None and one.bytes_to_copy is not None and one.bytes_to_copy - waiting > largest


def _begins_before(one: PartitionBytes, first_young: Mapping[int, ListedOffset]) -> bool:
    """Whether the first uncopied offset lies before the first young record."""
    answer = first_young.get(one.partition.partition)
    if answer is None or answer.error is not None:
        return False
    return answer.offset is None or one.first_pending < answer.offset


def _least(limit: int, local: int) -> int:
    return limit if local < 0 else min(limit, local)

"""Which partitions may have a closed segment that is to be copied: no request tells, but sizes and ages do.

A segment is closed by its size or its age when something is appended; local retention closes one of a tiered topic,
too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieredctl.kafka.cluster import Cluster, ListedOffset, TopicDescription
from tieredctl.ops.cluster.topic_settings import SEGMENT_BYTES, SEGMENT_MS, TopicSettings
from tieredctl.ops.tiering.partition_bytes import PartitionBytes


def with_closed_segments(
    cluster: Cluster,
    topic: TopicDescription,
    settings: TopicSettings,
    partitions: Sequence[PartitionBytes],
    waiting: Mapping[int, int | None],
    now_ms: int,
) -> list[int]:
    """The partitions whose offsets that are not copied yet are more, or older, than one segment may hold. Where some of
    them wait for the copy lag (`waiting`, in bytes, None where that is not known), the others have to be more. One that
    does not tell its bytes may have a closed segment, too.

    `settings` are those that the topic shall have. To be asked before it is tiered: while a broker begins to, it does
    not look offsets up by time. Raises TieredctlError as the cluster does.
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
    """Whether the first offset that is not copied yet lies before the first record that is young."""
    answer = first_young.get(one.partition.partition)
    if answer is None or answer.error is not None:
        return False
    return answer.offset is None or one.first_pending < answer.offset


def _least(limit: int, local: int) -> int:
    return limit if local < 0 else min(limit, local)

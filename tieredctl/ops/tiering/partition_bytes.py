"""Where a topic's partitions are, locally, in offsets and in bytes: the input of estimates.

Which partitions may have a closed segment to copy: Kafka has no request for this, but sizes and ages show it.

A segment is closed by its size or its age when something is appended; for a tiered topic, local retention closes
segments too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.topic_settings import SEGMENT_BYTES, SEGMENT_MS, CopyLag, TopicSettings, offset_by_time
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ports.cluster import Cluster, ListedOffset, OffsetSpec, PartitionDescription, TopicDescription

BYTES = "bytes on disks"
"""Their name in findings."""


@dataclass(frozen=True, slots=True)
class PartitionBytes:
    """A partition of a topic. Offsets are the leader's, None where it has none; bytes are by broker, if known."""

    partition: PartitionDescription
    earliest_local: int | None
    latest_tiered: int | None
    latest: int | None
    replica_bytes: Mapping[int, int]

    @property
    def leader_bytes(self) -> int | None:
        """On the leader's disk; None where unknown."""
        leader = self.partition.leader
        return None if leader is None else self.replica_bytes.get(leader)

    def share_from(self, offset: int, size: int) -> int:
        """The bytes of a local log of this size from an offset on, by the share of offsets: an estimate, as records
        differ in size. All of them where the offsets are unknown."""
        if self.earliest_local is None or self.latest is None or self.latest <= self.earliest_local:
            return size
        behind = self.latest - min(max(offset, self.earliest_local), self.latest)
        return size * behind // (self.latest - self.earliest_local)

    @property
    def first_pending(self) -> int:
        """The first offset on the leader's disk that is not in remote storage, as far as known."""
        return max(self.earliest_local or 0, 0 if self.latest_tiered is None else self.latest_tiered + 1)

    @property
    def bytes_to_copy(self) -> int | None:
        """The bytes that the leader has and remote storage does not, including the active segment; None where
        unknown."""
        if self.latest is not None and self.first_pending >= self.latest:
            return 0
        return None if self.leader_bytes is None else self.share_from(self.first_pending, self.leader_bytes)


def read_partition_bytes(cluster: Cluster, topic: TopicDescription, looking: Looking) -> Sequence[PartitionBytes]:
    """Asks the leaders, and all brokers for bytes: if the user may not see these, or a broker does not report them,
    `looking` notes it. Raises TieredctlError as the cluster does."""
    told = looking.where_allowed(BYTES, lambda: cluster.replica_bytes([topic.topic]))
    sizes = told or {}
    if told is not None:
        looking.findings += not_reported(silent_brokers(topic.topic, topic.partitions, sizes))
    return [
        replace(one, replica_bytes=sizes.get((topic.topic, one.partition.partition), {}))
        for one in read_partition_offsets(cluster, topic)
    ]


def silent_brokers(
    topic: str, partitions: Iterable[PartitionDescription], sizes: Mapping[tuple[str, int], Mapping[int, int]]
) -> set[int]:
    """Brokers with a replica whose bytes are not known, as of a broker that is down."""
    return {
        broker for one in partitions for broker in one.replicas if broker not in sizes.get((topic, one.partition), {})
    }


def not_reported(brokers: Collection[int]) -> Iterator[Finding]:
    """The finding that the bytes of these brokers' replicas are unknown, if there are any."""
    if brokers:
        who = ", ".join(f"broker {broker}" for broker in sorted(brokers))
        message = f"Replicas whose bytes are unknown: those on {who}, which may be down."
        yield Finding(FindingCode.CHECK_NOT_MADE, BYTES, message)


def read_partition_offsets(cluster: Cluster, topic: TopicDescription) -> Sequence[PartitionBytes]:
    """The offsets of each partition, without bytes."""
    earliest_local = cluster.list_offsets(topic, OffsetSpec.EARLIEST_LOCAL)
    latest_tiered = cluster.list_offsets(topic, OffsetSpec.LATEST_TIERED)
    latest = cluster.list_offsets(topic, OffsetSpec.LATEST)

    def offset(answers: Mapping[int, ListedOffset], partition: int) -> int | None:
        return answers[partition].offset if partition in answers else None

    return [
        PartitionBytes(
            one,
            offset(earliest_local, one.partition),
            offset(latest_tiered, one.partition),
            offset(latest, one.partition),
            {},
        )
        for one in topic.partitions
    ]


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

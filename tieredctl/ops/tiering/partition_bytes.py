"""Where a topic's partitions are, locally, in offsets and in bytes: the input of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tieredctl.ops.doctor.gathering import Looking
from tieredctl.ports.cluster import Cluster, ListedOffset, OffsetSpec, PartitionDescription, TopicDescription


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
    """Asks the leaders, and all brokers for bytes: if the user may not see these, `looking` notes it. Raises
    TieredctlError as the cluster does."""
    sizes = looking.where_allowed("bytes on disks", lambda: cluster.replica_bytes([topic.topic])) or {}
    return [
        replace(one, replica_bytes=sizes.get((topic.topic, one.partition.partition), {}))
        for one in read_partition_offsets(cluster, topic)
    ]


def read_partition_offsets(cluster: Cluster, topic: TopicDescription) -> Sequence[PartitionBytes]:
    """The same without bytes."""
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

"""What a topic had in remote storage before it was untiered: Kafka never copies that again.

RLMCopyTask begins after the highest offset that was ever copied (findHighestRemoteOffset), and no deletion lowers that.
Neither does it lower UnifiedLog's highestOffsetInRemoteStorage: ListOffsets answers it as the latest tiered offset as
soon as the topic is tiered again, and local retention deletes up to there. Seen with Kafka 3.9.1 and 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS
from tieredctl.ops.cluster.metadata_manager import demand_topic_based
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.cluster.topic_settings import RETENTION_BYTES, RETENTION_MS, TopicSettings
from tieredctl.ops.doctor.gathering import Looking
from tieredctl.ops.tiering.partition_bytes import PartitionBytes
from tieredctl.ops.tiering.remote_topic import RemoteTopic

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

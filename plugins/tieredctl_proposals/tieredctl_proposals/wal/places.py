"""Where combined objects and the events about them are."""

from __future__ import annotations

from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl_proposals.model.wal_events import CombinedEvent, WalSegmentEvent

WAL_SUFFIX = ".wal"


def object_key(combined_segment_id: str) -> str:
    """The key of a combined object. The proposal lets custom metadata name a path; nothing that others may have written
    names a key here."""
    return combined_segment_id + WAL_SUFFIX


def coordinator_partition(combined_segment_id: str, metadata_partitions: int) -> int:
    """The partition of `__remote_wal_log_metadata` that has the events of a combined object."""
    return metadata_partition(combined_segment_id, 0, metadata_partitions)


def partition_of_event(event: CombinedEvent | WalSegmentEvent, metadata_partitions: int) -> int:
    """The partition that an event goes to: a segment's events are with those of its user partition, as a consumer task
    of KIP-405 reads those alone."""
    if isinstance(event, CombinedEvent):
        return coordinator_partition(event.combined_segment_id, metadata_partitions)
    partition: TopicIdPartition = event.topic_id_partition
    return metadata_partition(partition.topic_id, partition.partition, metadata_partitions)

"""An event of each kind, and a stored segment."""

from __future__ import annotations

from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition

PARTITION = TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "t", 3)
SEGMENT_ID = "AQIDBAUGBwgJCgsMDQ4PEA"

SEGMENT = RemoteLogSegmentMetadata(
    topic_id_partition=PARTITION,
    segment_id=SEGMENT_ID,
    start_offset=0,
    end_offset=99,
    author=1,
    max_timestamp_ms=1700000000000,
    event_timestamp_ms=1700000000500,
    segment_leader_epochs=((0, 0), (2, 60)),
    segment_size_in_bytes=1048576,
)
UPDATE = RemoteLogSegmentMetadataUpdate(
    topic_id_partition=PARTITION,
    segment_id=SEGMENT_ID,
    author=1,
    event_timestamp_ms=1700000000900,
    state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
)
PARTITION_DELETE = RemotePartitionDeleteMetadata(
    topic_id_partition=PARTITION,
    author=1,
    event_timestamp_ms=1700000001000,
    state=RemotePartitionDeleteState.DELETE_PARTITION_MARKED,
)
SNAPSHOT = RemoteLogSegmentMetadataSnapshot(
    segment_id=SEGMENT_ID,
    start_offset=0,
    end_offset=99,
    author=1,
    max_timestamp_ms=1700000000000,
    event_timestamp_ms=1700000000500,
    segment_leader_epochs=((0, 0), (2, 60)),
    segment_size_in_bytes=1048576,
    custom_metadata=b"\1\2\3",
    txn_idx_empty=True,
)

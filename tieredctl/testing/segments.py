"""Segments for contracts."""

from __future__ import annotations

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition


def metadata_of(partition: TopicIdPartition, segment_id: str, start_offset: int) -> RemoteLogSegmentMetadata:
    """The metadata of a segment of one record."""
    return RemoteLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=segment_id,
        start_offset=start_offset,
        end_offset=start_offset,
        author=1,
        max_timestamp_ms=0,
        event_timestamp_ms=0,
        segment_leader_epochs=((0, start_offset),),
        segment_size_in_bytes=1,
    )

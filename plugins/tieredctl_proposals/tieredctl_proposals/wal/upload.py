"""An upload, step by step (KIP-1176, "RLMWalCombineTask").

The proposal's code announces each segment first and the combined object after them; its prose has it the other way
round. This is the code's order: it leaves no combined object announced whose segments nobody knows of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl_proposals.formats.wal_objects import combined_object
from tieredctl_proposals.model.wal_events import (
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalLogSegmentMetadataUpdate,
    WalEvent,
)
from tieredctl_proposals.wal.places import coordinator_partition, object_key, partition_of_event
from tieredctl_proposals.wal.sections import QueueItem
from tieredctl_proposals.wal.steps import Publish, PutObject, Step


def upload_steps(
    items: Sequence[QueueItem],
    combined_segment_id: str,
    *,
    broker_id: int,
    metadata_partitions: int,
    clock_ms: Callable[[], int],
) -> Iterator[Step]:
    """All segments are announced, then the object; it is stored; then the object is reported, and each segment.

    Records count as uploaded once the event about their segment was read back and taken: until then, anything may have
    been announced as deleted by a cleaner that gave the upload up.
    """
    coordinator = coordinator_partition(combined_segment_id, metadata_partitions)

    def publish(event: WalEvent) -> Publish:
        return Publish(event, partition_of_event(event, metadata_partitions))

    segments = [item.in_object(combined_segment_id, coordinator) for item in items]
    for segment in segments:
        yield publish(segment)
    begun = RemoteWalCombinedLogSegmentMetadata(
        combined_segment_id=combined_segment_id,
        entries=tuple(
            RemoteLogSegmentMetadataEntry(topic_id_partition=one.topic_id_partition, segment_id=one.segment_id)
            for one in segments
        ),
        broker_id=broker_id,
        event_timestamp_ms=clock_ms(),
    )
    yield publish(begun)
    uploaded, data = combined_object(begun, [item.records for item in items], clock_ms())
    yield PutObject(object_key(combined_segment_id), data)
    yield publish(uploaded)
    for segment, entry in zip(segments, uploaded.entries, strict=True):
        yield publish(
            RemoteWalLogSegmentMetadataUpdate(
                topic_id_partition=segment.topic_id_partition,
                segment_id=segment.segment_id,
                broker_id=broker_id,
                leader_epoch=segment.leader_epoch,
                event_timestamp_ms=clock_ms(),
                state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
                combined_segment_id=combined_segment_id,
                combined_coordinator_partition=coordinator,
                start_file_position=entry.start_file_position,
                end_file_position=entry.end_file_position,
            )
        )

"""The deletion of a combined object, step by step, from wherever an earlier one was interrupted.

The order mirrors that of an upload: all segments, the object, the store, the object, all segments. Once a deletion was
announced, the state machine lets nothing be reported as uploaded any more, so that an upload that hung and goes on
leads no reader to an object that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl_proposals.model.wal_events import (
    NO_LEADER,
    RemoteWalCombinedLogSegmentMetadataUpdate,
    RemoteWalLogSegmentMetadataUpdate,
)
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.replayed import KnownCombined, KnownWalSegment, ReplayedWal
from tieredctl_proposals.wal.steps import DeleteObject, Publish, Step

_DELETING, _DELETED = RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED


def deletion_steps(
    wal: ReplayedWal, combined_segment_id: str, *, broker_id: int, clock_ms: Callable[[], int]
) -> Iterator[Step]:
    """The rest of what deletes a combined object; the object itself is deleted again in any case.

    Whether it may go is decided elsewhere (`lifecycle.py`). Whoever takes these steps is not the leader of any of the
    partitions.
    """
    combined = wal.combined_named(combined_segment_id)
    segments = wal.segments_in(combined_segment_id)
    due = [one for one in segments if one.metadata.state is not _DELETED]
    yield from segment_deletions(due, _DELETING, broker_id=broker_id, clock_ms=clock_ms)
    if combined is not None and combined.metadata.state not in (_DELETING, _DELETED):
        yield _combined_deletion(combined, _DELETING, broker_id, clock_ms())
    yield DeleteObject(object_key(combined_segment_id))
    if combined is not None and combined.metadata.state is not _DELETED:
        yield _combined_deletion(combined, _DELETED, broker_id, clock_ms())
    yield from segment_deletions(due, _DELETED, broker_id=broker_id, clock_ms=clock_ms)


def segment_deletions(
    segments: Sequence[KnownWalSegment],
    state: RemoteLogSegmentState,
    *,
    broker_id: int,
    leader_epoch: int = NO_LEADER,
    clock_ms: Callable[[], int],
) -> Iterator[Publish]:
    """The events that bring segments into a state of deletion, for those that are not in it yet."""
    for one in segments:
        metadata = one.metadata
        if metadata.state is state:
            continue
        event = RemoteWalLogSegmentMetadataUpdate(
            topic_id_partition=metadata.topic_id_partition,
            segment_id=one.segment_id,
            broker_id=broker_id,
            leader_epoch=leader_epoch,
            event_timestamp_ms=clock_ms(),
            state=state,
            custom_metadata=metadata.custom_metadata,
            combined_segment_id=one.combined_segment_id,
            combined_coordinator_partition=one.combined_coordinator_partition,
            start_file_position=one.start_file_position,
            end_file_position=one.end_file_position,
        )
        yield Publish(event, one.known.metadata_partition)


def _combined_deletion(
    combined: KnownCombined, state: RemoteLogSegmentState, broker_id: int, event_timestamp_ms: int
) -> Publish:
    metadata = combined.metadata
    event = RemoteWalCombinedLogSegmentMetadataUpdate(
        combined_segment_id=metadata.combined_segment_id,
        entries=metadata.entries,
        broker_id=broker_id,
        event_timestamp_ms=event_timestamp_ms,
        state=state,
        custom_metadata=metadata.custom_metadata,
    )
    return Publish(event, combined.metadata_partition)

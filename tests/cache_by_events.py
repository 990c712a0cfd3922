"""Kafka's cache as it takes a partition's events one after the other: what the one made of columns is compared with."""

from __future__ import annotations

from dataclasses import replace

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from tieredctl.rlmm.cache import DeletedOffsets, KnownSegment, LeaderEpochState, RemoteLogMetadataCache
from tieredctl.rlmm.states import Refusal, start_refusal, update_refusal


def said_once(
    metadata: RemoteLogSegmentMetadata, metadata_partition: int = 0, metadata_offset: int = 0
) -> KnownSegment:
    """As it is when one event has said its state."""
    return KnownSegment(metadata, metadata_partition, metadata_offset, metadata.event_timestamp_ms, 1)


class CacheByEvents(RemoteLogMetadataCache):
    """Takes events in order."""

    def state_of(self, segment_id: str) -> RemoteLogSegmentState | None:
        known = self._segments.get(segment_id)
        return known.metadata.state if known else None

    def add(self, segment: KnownSegment) -> Refusal | None:
        """A copy that starts (addCopyInProgressSegment). Returns why it is refused, if it is."""
        metadata = segment.metadata
        refusal = start_refusal(self.state_of(metadata.segment_id), metadata.state)
        if refusal is not None:
            return refusal
        self._segments[metadata.segment_id] = self._with_history(segment)
        for epoch, _, _ in metadata.epoch_ranges():
            self._epochs.setdefault(epoch, LeaderEpochState()).copy_started(metadata.segment_id)
        return None

    def update(
        self, update: RemoteLogSegmentMetadataUpdate, metadata_partition: int, metadata_offset: int
    ) -> KnownSegment | Refusal:
        """A known segment's next state (updateRemoteLogSegmentMetadata): the segment as it is now, or why not."""
        known = self._segments.get(update.segment_id)
        refusal = update_refusal(known.metadata.state if known else None, update.state)
        if known is None or refusal is not None:
            return refusal or Refusal.UNKNOWN_SEGMENT
        metadata = replace(
            known.metadata,
            author=update.author,
            event_timestamp_ms=update.event_timestamp_ms,
            state=update.state,
            custom_metadata=update.custom_metadata,
        )
        change = known.metadata.state, update.state
        if change == (RemoteLogSegmentState.COPY_SEGMENT_FINISHED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED):
            self.deleted = DeletedOffsets((*self.deleted.stretches, (metadata.start_offset, metadata.end_offset)))
        updated = self._with_history(said_once(metadata, metadata_partition, metadata_offset))
        self._apply(updated)
        return updated

    def _with_history(self, segment: KnownSegment) -> KnownSegment:
        before = self._segments.get(segment.metadata.segment_id)
        if before is None or before.metadata.state is not segment.metadata.state:
            return segment
        return replace(segment, entered_ms=before.entered_ms, tries=before.tries + 1)

    def _apply(self, segment: KnownSegment) -> None:
        metadata = segment.metadata
        segment_id, state = metadata.segment_id, metadata.state
        for epoch, start, end in metadata.epoch_ranges():
            epoch_state = self._epochs.setdefault(epoch, LeaderEpochState())
            if state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
                epoch_state.copy_finished(segment_id, start, end)
            elif state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
                epoch_state.delete_started(segment_id, start)
            else:
                epoch_state.delete_finished(segment_id)
        if state is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
            del self._segments[segment_id]
        else:
            self._segments[segment_id] = segment

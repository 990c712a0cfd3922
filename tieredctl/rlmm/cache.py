"""The known remote segments of one partition (Kafka's RemoteLogMetadataCache, as of 3.6 and later)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.rlmm.deleted_offsets import NOTHING_DELETED, DeletedOffsets
from tieredctl.rlmm.leader_epoch_state import LeaderEpochState


@dataclass(frozen=True, slots=True)
class KnownSegment:
    """A segment's metadata as of its last event, which event that was, and since when it is in its state."""

    metadata: RemoteLogSegmentMetadata
    metadata_partition: int
    metadata_offset: int
    entered_ms: int
    """The time of the event that put it into its state. A broker that tries again says the same state again, with the
    time of that try (RemoteLogManager.deleteRemoteLogSegment)."""
    tries: int
    """How many events say its state, from that one on."""


class RemoteLogMetadataCache:
    """Answers what a broker would answer once it took a partition's events; `replayed_cache` makes it of them."""

    def __init__(
        self,
        segments: dict[str, KnownSegment] | None = None,
        epochs: dict[int, LeaderEpochState] | None = None,
        deleted: DeletedOffsets = NOTHING_DELETED,
    ) -> None:
        """Empty, or as events left it."""
        self._segments = {} if segments is None else segments
        self._epochs = {} if epochs is None else epochs
        self.deleted = deleted
        """The offsets of finished copies whose deletion has begun, or finished."""

    def remote_log_segment_metadata(self, epoch: int, offset: int) -> KnownSegment | None:
        """The segment that serves a fetch of `offset` in leader epoch `epoch`, if any does."""
        epoch_state = self._epochs.get(epoch)
        segment_id = epoch_state.floor(offset) if epoch_state else None
        if segment_id is None:
            return None
        known = self._segments[segment_id]
        last = next(last for e, _, last in known.metadata.epoch_ranges() if e == epoch)
        return known if offset <= last else None

    def highest_offset_for_epoch(self, epoch: int) -> int | None:
        """The greatest offset (inclusive) ever copied for an epoch; None where nothing was."""
        epoch_state = self._epochs.get(epoch)
        return epoch_state.highest_offset if epoch_state else None

    def highest_offset(self) -> int | None:
        """The greatest offset (inclusive) ever copied; None where nothing was."""
        highest = (state.highest_offset for state in self._epochs.values())
        return max((offset for offset in highest if offset is not None), default=None)

    def list_remote_log_segments(self, epoch: int | None = None) -> list[KnownSegment]:
        """Every known segment, or those of one epoch: by start offset, then by id."""
        ids: Iterable[str] = self._segments
        if epoch is not None:
            epoch_state = self._epochs.get(epoch)
            ids = [*epoch_state.referenced, *epoch_state.unreferenced] if epoch_state else ()
        # A copy that started twice, with other epochs, leaves its id in the first ones for ever: Kafka's own
        # listing of such an epoch fails once the segment is deleted.
        known = (self._segments[segment_id] for segment_id in ids if segment_id in self._segments)
        return sorted(known, key=lambda segment: (segment.metadata.start_offset, segment.metadata.segment_id))

    def next_segment_with_txn_index(self, epoch: int, offset: int) -> KnownSegment | None:
        """The first segment from `offset` on, along one epoch, that may have a transaction index."""
        tried = set[int]()
        while (known := self.remote_log_segment_metadata(epoch, offset)) and known.metadata.txn_idx_empty:
            if offset in tried:
                return None  # leader epochs reach beyond a segment's end; Kafka's own look-up never returns here
            tried.add(offset)
            offset = known.metadata.end_offset + 1
        return known

    def epochs(self) -> list[int]:
        """Every leader epoch seen, ascending."""
        return sorted(self._epochs)

    def referenced(self) -> set[str]:
        """The ids of the segments that some look-up can still reach: not those whose copy another displaced."""
        return {segment_id for state in self._epochs.values() for segment_id in state.referenced}

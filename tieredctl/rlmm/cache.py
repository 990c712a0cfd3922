"""The known remote segments of one partition (Kafka's RemoteLogMetadataCache, as of 3.6 and later).

Which offsets of a partition were in finished copies that are deleted, or being deleted.

Retention deletes by leader epoch, so after a change of leader later offsets may go before earlier ones: a hole that
deletions explain is no loss, whatever lies around it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.size_sum import SizeSum


@dataclass(frozen=True, slots=True)
class DeletedOffsets:
    """Stretches of offsets, both ends inclusive, in no order."""

    stretches: Sequence[tuple[int, int]] = ()

    @property
    def highest(self) -> int | None:
        """None where nothing was deleted."""
        return max((last for _, last in self.stretches), default=None)

    def not_among(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """What of the offsets from `first` to `last` was never in a deleted segment."""
        for start, end in sorted(self.stretches):
            if end < first:
                continue
            if start > last:
                break
            if start > first:
                yield first, start - 1
            first = end + 1
        if first <= last:
            yield first, last


NOTHING_DELETED = DeletedOffsets()


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
        segment = self._segments[segment_id]
        last = next(last for e, _, last in segment.metadata.epoch_ranges() if e == epoch)
        return segment if offset <= last else None

    def serving(self, epoch: int, first: int, last: int) -> Iterator[tuple[KnownSegment, int, int]]:
        """Which segments serve fetches of the offsets from `first` to `last` (inclusive) in a leader epoch, each with
        the first and last that it serves; what `remote_log_segment_metadata` says of each offset."""
        epoch_state = self._epochs.get(epoch)
        for segment_id, start, end in epoch_state.floors(first, last) if epoch_state else ():
            known = self._segments[segment_id]
            own_last = next(last for e, _, last in known.metadata.epoch_ranges() if e == epoch)
            if start <= own_last:
                yield known, start, min(end, own_last)

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
        segments = (self._segments[segment_id] for segment_id in ids if segment_id in self._segments)
        return sorted(segments, key=lambda segment: (segment.metadata.start_offset, segment.metadata.segment_id))

    def epochs(self) -> list[int]:
        """Every leader epoch seen, ascending."""
        return sorted(self._epochs)

    def referenced(self) -> set[str]:
        """The ids of the segments that some look-up can still reach: not those whose copy another displaced."""
        return {segment_id for state in self._epochs.values() for segment_id in state.referenced}


class LeaderEpochState:
    """An epoch's segments by the offsets that they serve, the ids that serve none, and its highest offset ever."""

    def __init__(self) -> None:
        self._id_by_start: dict[int, str] = {}
        self._starts: list[int] = []
        self.unreferenced: set[str] = set()
        self.highest_offset: int | None = None
        """The greatest end offset ever finished, inclusive. It stays when the segment is deleted."""

    @property
    def referenced(self) -> list[str]:
        """Ids that serve offsets, by rising start offset."""
        return [self._id_by_start[start] for start in self._starts]

    def copy_started(self, segment_id: str) -> None:
        self.unreferenced.add(segment_id)

    def copy_finished(self, segment_id: str, start: int, end: int) -> None:
        """`start` and `end` bound the epoch inside the segment, both inclusive. Segments that the new one covers up
        to the epoch's highest offset are displaced."""
        while self._covered(start, end):
            self.unreferenced.add(self._id_by_start.pop(self._starts.pop()))
        if start not in self._id_by_start:
            insort(self._starts, start)
        self._id_by_start[start] = segment_id
        self.unreferenced.discard(segment_id)
        self.highest_offset = end if self.highest_offset is None else max(self.highest_offset, end)

    def _covered(self, start: int, end: int) -> bool:
        if not self._starts or self._starts[-1] < start:
            return False
        return self.highest_offset is not None and self.highest_offset <= end

    def delete_started(self, segment_id: str, start: int) -> None:
        if self._id_by_start.get(start) == segment_id:
            del self._id_by_start[start]
            del self._starts[bisect_left(self._starts, start)]
        self.unreferenced.add(segment_id)

    def delete_finished(self, segment_id: str) -> None:
        self.unreferenced.discard(segment_id)

    def floors(self, first: int, last: int) -> Iterator[tuple[str, int, int]]:
        """The first and last offset, between these two, of which each segment is the floor."""
        begin = max(bisect_right(self._starts, first) - 1, 0)
        for index in range(begin, bisect_right(self._starts, last)):
            end = min(self._starts[index + 1] - 1, last) if index + 1 < len(self._starts) else last
            yield self._id_by_start[self._starts[index]], max(self._starts[index], first), end

    def floor(self, offset: int) -> str | None:
        """The segment with the greatest start offset that is not above `offset`."""
        index = bisect_right(self._starts, offset)
        return self._id_by_start[self._starts[index - 1]] if index else None


def segments_in_use(remote: RemoteLogMetadataCache) -> list[RemoteLogSegmentMetadata]:
    """The segments in COPY_SEGMENT_FINISHED that a look-up can reach."""
    segments, referenced = remote.list_remote_log_segments(), remote.referenced()
    return [segment.metadata for segment in segments if segment.metadata.segment_id in referenced]


def bytes_from(segments: Iterable[RemoteLogSegmentMetadata], offset: int) -> SizeSum:
    """How much of segments lies at an offset or after it; of one that it divides, by the share of offsets."""
    shares: list[int | None] = []
    for metadata in segments:
        later_offsets = metadata.end_offset + 1 - max(offset, metadata.start_offset)
        if later_offsets > 0:
            size, offsets = metadata.known_size, metadata.end_offset + 1 - metadata.start_offset
            shares.append(None if size is None else size * later_offsets // offsets)
    return SizeSum.of(shares)

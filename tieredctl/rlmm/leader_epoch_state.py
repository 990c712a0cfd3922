"""The segments of one leader epoch of one partition (Kafka's RemoteLogLeaderEpochState)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort


class LeaderEpochState:
    """Which segment serves which offset of an epoch, which ids serve none, and the epoch's highest offset ever."""

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

    def floor(self, offset: int) -> str | None:
        """The segment with the greatest start offset that is not above `offset`."""
        index = bisect_right(self._starts, offset)
        return self._id_by_start[self._starts[index - 1]] if index else None

"""A partition of `__diskless_metadata` in memory, replicated when a test says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl_proposals.coordinator.metadata_log import LoggedRecord, NotLeader
from tieredctl_proposals.model.diskless_records import DisklessRecord


class MemoryLog:
    """Appends are batches: all records of one are replicated, or lost, together."""

    def __init__(self, name: str = "cluster __diskless_metadata-0", records: Sequence[LoggedRecord] = ()) -> None:
        self.name = name
        self.records = list(records)
        self.start_offset = 0
        self.high_watermark = len(self.records)
        self.is_led_here = True
        self._ends: list[int] = []

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def append(self, records: Sequence[DisklessRecord], timestamp_ms: int) -> int:
        if not self.is_led_here:
            raise NotLeader
        first = self.end_offset
        self.records += [LoggedRecord(first + at, timestamp_ms, record) for at, record in enumerate(records)]
        self._ends.append(self.end_offset)
        return first

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        assert offset >= self.start_offset
        yield from self.records[offset : self.high_watermark]

    def prune(self, offset: int) -> None:
        assert offset <= self.high_watermark
        self.start_offset = offset

    def replicate(self, batches: int | None = None) -> None:
        """The next batches are on all in-sync replicas; all of them by default."""
        waiting = [end for end in self._ends if end > self.high_watermark]
        if waiting:
            self.high_watermark = waiting[-1 if batches is None else min(batches, len(waiting)) - 1]

    def lose_leadership(self, kept: int = 0) -> None:
        """Another broker leads the log from now on, and has so many of the batches that were not replicated yet."""
        self.is_led_here = False
        if kept:
            self.replicate(kept)
        del self.records[self.high_watermark :]
        self._ends = [end for end in self._ends if end <= self.high_watermark]

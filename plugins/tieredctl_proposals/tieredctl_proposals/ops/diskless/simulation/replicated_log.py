"""The log of a simulated coordinator: what is replicated stays, what is not may go with its leader."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from tieredctl_proposals.coordinator.metadata_log import LoggedRecord, NotLeader
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC, DisklessRecord


class ReplicatedLog:
    """What all leaders of one coordinator append to, in turn. A MetadataLog is one leader's view of it."""

    def __init__(self, coordinator_id: int) -> None:
        self.name = f"{DISKLESS_METADATA_TOPIC}-{coordinator_id}"
        self.start_offset = 0
        self.high_watermark = 0
        self.leader_epoch = 0
        self.records: deque[LoggedRecord] = deque()

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.records)

    def fail_over(self, chance: Random) -> None:
        """A new leader: of what was not known to be replicated, it has some, or all, or nothing."""
        self.leader_epoch += 1
        for _ in range(chance.randint(0, self.end_offset - self.high_watermark)):
            self.records.pop()


class LeadersLog:
    """The log as one leader has it: once another leads, nothing can be appended."""

    def __init__(self, log: ReplicatedLog) -> None:
        self._log = log
        self._leader_epoch = log.leader_epoch
        self.name = log.name

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def high_watermark(self) -> int:
        return self._log.high_watermark

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    def append(self, records: Sequence[DisklessRecord], timestamp_ms: int) -> int:
        if self._leader_epoch != self._log.leader_epoch:
            raise NotLeader
        first = self._log.end_offset
        self._log.records += (LoggedRecord(first + place, timestamp_ms, each) for place, each in enumerate(records))
        return first

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        first = offset - self._log.start_offset
        return islice(self._log.records, first, self._log.high_watermark - self._log.start_offset)

    def prune(self, offset: int) -> None:
        while self._log.start_offset < offset:
            self._log.records.popleft()
            self._log.start_offset += 1

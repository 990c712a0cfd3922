"""A partition of `__diskless_metadata`, as the coordinator sees it: the source of truth that its state is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tieredctl_proposals.model.diskless_records import DisklessRecord


class LoggedRecord(NamedTuple):
    """A record where it stands. Its timestamp, in milliseconds since the epoch, is that of its appending: whoever
    applies it takes no other clock, so that all replicas come to the same state."""

    offset: int
    timestamp_ms: int
    record: DisklessRecord


class NotLeader(Exception):
    """The log takes nothing from this broker: another leads it. What was appended and not replicated may be gone."""


class MetadataLog(Protocol):
    """What a log has to do. Its offsets have no gaps."""

    name: str
    """Topic, partition and cluster: a state made of another log is never taken for one of this."""

    @property
    def start_offset(self) -> int:
        """The first offset that was not pruned."""

    @property
    def high_watermark(self) -> int:
        """The offset up to which, exclusively, every in-sync replica has the log: no leader will take it back."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""

    def append(self, records: Sequence[DisklessRecord], timestamp_ms: int) -> int:
        """Appends all of them or none, as one batch; returns the offset of the first. Raises NotLeader."""

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        """The records from an offset, which is not less than the start, up to the high watermark."""

    def prune(self, offset: int) -> None:
        """Forgets what is before an offset."""

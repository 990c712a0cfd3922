"""What brokers' disks still have of segments in remote storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tieredctl.model.events import RemoteLogSegmentMetadata


class Refusal(NamedTuple):
    """Why there are no bytes where some were looked for."""

    place: str
    reason: str
    is_unread: bool = False
    """Whether the bytes may be there all the same: the place could not be read."""


class ReplicaSegment(NamedTuple):
    """A segment's batches on a broker's disk, and what else a broker keeps there."""

    place: str
    log: bytes
    """The batches with offsets of the segment, in their order, whatever files they are in."""
    producer_snapshot: bytes | None
    """The one taken after the segment's last offset."""


class ReplicaDisks(Protocol):
    """Log directories of brokers. Nothing there is believed: a replica may have diverged."""

    def segments(self, metadata: RemoteLogSegmentMetadata) -> Iterator[ReplicaSegment | Refusal]:
        """What each replica has of a segment. Raises TieredctlError for what may not be read."""
        ...


class NoDisks:
    """Where no log directory was named."""

    def segments(self, _metadata: RemoteLogSegmentMetadata) -> Iterator[ReplicaSegment | Refusal]:
        return iter(())

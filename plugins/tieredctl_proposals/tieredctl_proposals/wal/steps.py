"""What is done to the metadata topic and the store, one step at a time, so that each interruption has a name."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl_proposals.model.wal_events import WalEvent


@dataclass(frozen=True, slots=True)
class Publish:
    """An event is written to a partition of `__remote_wal_log_metadata`, and read back before the next step."""

    event: WalEvent
    metadata_partition: int


@dataclass(frozen=True, slots=True)
class PutObject:
    """A combined object is written whole, and replaces one that is there (`copyLogSegmentData` is idempotent)."""

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """A combined object is deleted; that it is gone already is as good."""

    key: str


Step = Publish | PutObject | DeleteObject

"""What tieredctl asks the leader of a metadata quorum about snapshots of its log (KIP-630)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tieredctl.formats.file_names import KraftSnapshotName


class QuorumLeader(NamedTuple):
    """The controller that leads the metadata log, and its latest snapshot, if it has one.

    `log_start_offset` and `high_watermark` are those of its log; the latter is exclusive.
    """

    node_id: int
    epoch: int
    latest_snapshot: KraftSnapshotName | None
    log_start_offset: int
    high_watermark: int


class SnapshotChunk(NamedTuple):
    """Bytes of a snapshot from the position that was asked for, and the size of the whole."""

    size: int
    data: bytes


class LeaderChanged(Exception):
    """Another controller leads now. Its snapshots are others, also those of the same name: each controller writes its
    own, with its own timestamps."""


class SnapshotSource(Protocol):
    """The leader of a metadata quorum. Every method may raise TieredctlError: `broker-unreachable`, `broker-refused`,
    `another-cluster`."""

    def leader(self) -> QuorumLeader:
        """Who leads now."""
        ...

    def chunk(self, snapshot: KraftSnapshotName, position: int, max_bytes: int) -> SnapshotChunk:
        """At most `max_bytes` of a snapshot of the leader that `leader` named last.

        Raises LeaderChanged where that controller leads no longer, TieredctlError `snapshot-unavailable` where it has
        no such snapshot, or none that is so long.
        """
        ...

    def log_begins_ms(self) -> int | None:
        """When one of the first records of the leader's log was written; None where it does not show that."""
        ...

    def describe(self) -> dict[str, object]:
        """The `source` of a JSON document."""
        ...


class MetadataLogSource(SnapshotSource, Protocol):
    """The leader of a metadata quorum, also for the log after its snapshot."""

    def log_after(self, snapshot: KraftSnapshotName | None) -> Iterator[bytes]:
        """The batches of the leader's log after a snapshot, or from the beginning where there is none, up to what is
        committed when this is called. Raises LeaderChanged where the log no longer follows that snapshot."""
        ...

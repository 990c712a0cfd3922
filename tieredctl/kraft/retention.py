"""Decides which snapshots, and which segments of the metadata log before them, a node may delete.

KIP-630 deletes a snapshot once it is before the log's start, which the leader raises to a snapshot's end offset when
all live replicas have it or after `metadata.start.offset.lag.time.max.ms`. No release has that setting. What brokers
do, and this module with them, goes by size and age: KafkaRaftLog.maybeClean, cleanSnapshotsRetentionSize and
cleanSnapshotsRetentionMs, with `metadata.max.retention.bytes` and `metadata.max.retention.ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tieredctl.kraft.replica import SnapshotId
from tieredctl.model.quantities import duration_text

RETENTION_MS, RETENTION_BYTES = "metadata.max.retention.ms", "metadata.max.retention.bytes"
DEFAULT_RETENTION_MS, DEFAULT_RETENTION_BYTES = 7 * 24 * 3_600_000, 100 << 20


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Kafka's two settings; a negative one does not limit."""

    max_age_ms: int = DEFAULT_RETENTION_MS
    max_bytes: int = DEFAULT_RETENTION_BYTES


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A finished snapshot."""

    id: SnapshotId
    size: int
    """In bytes."""
    last_contained_ms: int | None
    """When the last record that it contains was written (LastContainedLogTimestamp); None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class KeptSegment:
    """A segment of the log."""

    base_offset: int
    size: int
    """The size of its `.log`, in bytes."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Something that may be deleted, and why."""

    what: KeptSnapshot | KeptSegment
    reason: str


@dataclass(slots=True)
class Expired:
    """What may be deleted, and what that leaves."""

    log_start_offset: int
    """After the deletion: the end offset of the oldest snapshot that stays, if any goes."""
    before_log: Sequence[SnapshotId] = ()
    """Snapshots that end before the log's start: a node deletes them when it starts, and no limit looks at them."""
    removals: list[Removal] = field(default_factory=list)
    """In an order that is sound wherever it is interrupted: segments before the snapshots that have their records, the
    oldest first."""

    @property
    def snapshots(self) -> list[SnapshotId]:
        return [one.what.id for one in self.removals if isinstance(one.what, KeptSnapshot)]

    @property
    def segments(self) -> list[int]:
        """The base offsets."""
        return [one.what.base_offset for one in self.removals if isinstance(one.what, KeptSegment)]


def expired(
    snapshots: Sequence[KeptSnapshot], segments: Sequence[KeptSegment], limits: RetentionLimits, now_ms: int
) -> Expired:
    """What a node deletes the next time it looks. The latest snapshot always stays, and with it all of the log that
    is not in it.

    `snapshots` are in the order of their ids, `segments` in that of their base offsets.
    """
    start = segments[0].base_offset if segments else 0
    within = {one.id: one for one in snapshots if one.id.end_offset >= start}
    before = [one.id for one in snapshots if one.id not in within]
    node = _Node(within, list(segments), Expired(start, before))
    if limits.max_bytes >= 0:
        node.clean(node.too_large(limits.max_bytes))
    if limits.max_age_ms >= 0:
        node.clean(node.too_old(limits.max_age_ms, now_ms))
    return node.gone


_Rule = Callable[[KeptSnapshot], str | None]


class _Node:
    def __init__(self, snapshots: dict[SnapshotId, KeptSnapshot], segments: list[KeptSegment], gone: Expired) -> None:
        self.snapshots = snapshots
        self.segments = segments
        self.gone = gone

    def too_large(self, max_bytes: int) -> _Rule:
        """Sizes are taken before anything goes: each snapshot that goes lowers the sum."""
        all_snapshots = sum(one.size for one in self.snapshots.values())

        def rule(snapshot: KeptSnapshot) -> str | None:
            nonlocal all_snapshots
            log = sum(one.size for one in self.segments)
            if log + all_snapshots <= max_bytes:
                return None
            reason = f"the log has {log} bytes and the snapshots have {all_snapshots}, more than {max_bytes} together"
            all_snapshots -= snapshot.size
            return reason

        return rule

    def too_old(self, max_age_ms: int, now_ms: int) -> _Rule:
        def rule(snapshot: KeptSnapshot) -> str | None:
            if snapshot.last_contained_ms is None:
                return None  # an age that is not known is not too high
            age = now_ms - snapshot.last_contained_ms
            if age <= max_age_ms:
                return None
            is_old, limit = duration_text(age), duration_text(max_age_ms)
            if is_old == limit:
                return f"its last record is just over {limit} old"
            return f"its last record is {is_old} old, more than {limit}"

        return rule

    def clean(self, rule: _Rule) -> None:
        ids = list(self.snapshots)
        for number, snapshot_id in enumerate(ids[:-1]):
            reason = rule(self.snapshots[snapshot_id])
            if reason is None or not self._delete_before(ids[number + 1], reason):
                return

    def _delete_before(self, following: SnapshotId, reason: str) -> bool:
        """Raises the log's start to a snapshot's end, and deletes what is before both. False where it is there."""
        if following.end_offset <= self.gone.log_start_offset:
            return False
        self.gone.log_start_offset = following.end_offset
        while len(self.segments) > 1 and self.segments[1].base_offset <= following.end_offset:
            contained = f"all its records are in snapshot {following}"
            self.gone.removals.append(Removal(self.segments.pop(0), contained))
        for snapshot_id in [one for one in self.snapshots if one < following]:
            self.gone.removals.append(Removal(self.snapshots.pop(snapshot_id), reason))
        return True

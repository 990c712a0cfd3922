"""What `snapshot clean` would remove of a stopped node's snapshots and log, and what stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from tieredctl.kraft.replica import SnapshotId
from tieredctl.kraft.retention import (
    RETENTION_BYTES,
    RETENTION_MS,
    KeptSegment,
    KeptSnapshot,
    RetentionLimits,
    expired,
)
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.local_file import SeenFile
from tieredctl.model.result_row import Column, Main, ResultRow, Size, Wide
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.documents import Document

_LEFT_OVER = "a node deletes it when it starts"
_BEFORE_THE_LOG = "it is before the log's start: a node deletes it when it starts"
_LATEST = "it is the latest snapshot, with which a node starts"
_WITHIN_LIMITS = "the limits keep it"
_ACTIVE = "it has records that no snapshot which stays contains, or is the last segment"


class FileKind(StrEnum):
    """What a planned file is."""

    SNAPSHOT = "snapshot"
    SEGMENT = "segment"
    LEFT_OVER = "left-over"


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """What a node's folder has."""

    snapshots: Sequence[KeptSnapshot]
    """All that are finished, in their order."""
    segments: Sequence[KeptSegment]
    """In the order of their base offsets."""
    files_of_segments: Mapping[int, Sequence[SeenFile]]
    """By base offset: the log, then its indexes and its producer snapshot."""
    files_of_snapshots: Mapping[SnapshotId, SeenFile]
    left_over: Sequence[SeenFile]
    """The files of writes and deletions that never ended, such as an index whose log is gone."""


@dataclass(frozen=True, slots=True)
class PlannedFilesRow(ResultRow):
    """Planned files as a result shows them."""

    file: str
    kind: FileKind
    action: str
    end_offset: Wide[int | None]
    epoch: Wide[int | None]
    base_offset: Wide[int | None]
    files: Annotated[int, Column(wide=True, after="reason")]
    size: Size[int]
    reason: Main[str]


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """A snapshot, a segment or a left-over file, and what becomes of it."""

    kind: FileKind
    files: Sequence[SeenFile]
    """Removed in this order."""
    reason: str
    removed: bool
    snapshot: SnapshotId | None = None
    base_offset: int | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def row(self) -> PlannedFilesRow:
        action, snapshot = "remove" if self.removed else "keep", self.snapshot
        end_offset, epoch = (None, None) if snapshot is None else (snapshot.end_offset, snapshot.epoch)
        return PlannedFilesRow(
            *(self.files[0].name, self.kind, action, end_offset, epoch, self.base_offset),
            *(len(self.files), self.size, self.reason),
        )


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """What goes and what stays, and the proof that a node can start on what stays."""

    cluster: OfflineCluster
    """As of the latest snapshot and the log after it, both read in full."""
    limits: RetentionLimits
    limit_sources: Mapping[str, str]
    """Who says so, for each of the two settings."""
    now_ms: int
    log_start_offset: int
    """Afterwards: of the first segment that stays."""
    parts: Sequence[PlannedFiles]
    unreadable: Sequence[SnapshotId] = field(default=())
    """Snapshots whose age cannot be read: they are kept, unless there is too much."""

    def to_remove(self) -> list[PlannedFiles]:
        return [part for part in self.parts if part.removed]

    def kept(self) -> list[SeenFile]:
        """The files that must not change while others are removed."""
        return [file for part in self.parts if not part.removed for file in part.files]

    def source(self) -> Document:
        return self.cluster.describe()

    def rows(self) -> list[PlannedFilesRow]:
        """What goes, in the order in which it goes; then what stays."""
        return [part.row() for part in sorted(self.parts, key=lambda part: not part.removed)]

    def summary(self) -> Document:
        removed = self.to_remove()
        kinds = [part.kind for part in removed]
        return {
            "planned": len(removed),
            "bytes": sum(part.size for part in removed),
            "snapshots": kinds.count(FileKind.SNAPSHOT),
            "segments": kinds.count(FileKind.SEGMENT),
            "leftOver": kinds.count(FileKind.LEFT_OVER),
            "kept": len(self.parts) - len(removed),
            "bytesKept": sum(part.size for part in self.parts if not part.removed),
            "logStartOffset": self.log_start_offset,
            RETENTION_MS: self.limits.max_age_ms,
            RETENTION_BYTES: self.limits.max_bytes,
            "limitsFrom": dict(self.limit_sources),
        }

    def findings(self) -> list[Finding]:
        return [
            Finding(
                FindingCode.UNREADABLE,
                f"{self.cluster.path}/{snapshot.file_name}",
                "the header of this snapshot cannot be read: its age is unknown",
                {"file": f"{self.cluster.path}/{snapshot.file_name}"},
            )
            for snapshot in self.unreadable
        ]


def plan_cleaning(
    node: NodeFiles,
    cluster: OfflineCluster,
    limits: RetentionLimits,
    now_ms: int,
    limit_sources: Mapping[str, str],
) -> CleaningPlan:
    """By Kafka's rules (`kraft/retention.py`), and what a node deletes in any case when it starts.

    `cluster` must have been read from the same files, and `demand_sound_node` must accept it.
    """
    gone = expired(node.snapshots, node.segments, limits, now_ms)
    parts = [PlannedFiles(FileKind.LEFT_OVER, [file], _LEFT_OVER, removed=True) for file in node.left_over]
    parts += [_snapshot(node, one, _BEFORE_THE_LOG, removed=True) for one in gone.before_log]
    for removal in gone.removals:
        if isinstance(removal.what, KeptSnapshot):
            parts.append(_snapshot(node, removal.what.id, removal.reason, removed=True))
        else:
            parts.append(_segment(node, removal.what.base_offset, removal.reason, removed=True))
    snapshots = [one for one in node.snapshots if one.id not in gone.before_log]
    stay = [one.id for one in snapshots if one.id not in gone.snapshots]
    parts += [_snapshot(node, one, _LATEST if one == stay[-1] else _WITHIN_LIMITS, removed=False) for one in stay]
    left = [one.base_offset for one in node.segments if one.base_offset not in gone.segments]
    parts += [_segment(node, one, _ACTIVE, removed=False) for one in left]
    unreadable = [one.id for one in snapshots if one.last_contained_ms is None]
    return CleaningPlan(cluster, limits, limit_sources, now_ms, left[0] if left else 0, parts, unreadable)


def _snapshot(node: NodeFiles, snapshot: SnapshotId, reason: str, *, removed: bool) -> PlannedFiles:
    return PlannedFiles(FileKind.SNAPSHOT, [node.files_of_snapshots[snapshot]], reason, removed, snapshot=snapshot)


def _segment(node: NodeFiles, base_offset: int, reason: str, *, removed: bool) -> PlannedFiles:
    files = node.files_of_segments[base_offset]
    return PlannedFiles(FileKind.SEGMENT, files, reason, removed, base_offset=base_offset)

"""Puts rebuilt indexes into the store.

Brokers' copies of a segment's indexes, in `remote-log-index-cache` of their first log directory and in memory.

Source: RemoteIndexCache. A broker fetches the three indexes once, when it first reads the segment, and keeps using
them, even after a restart, until they are evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart, index_cache_file_name
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.healing.index_plan import IndexRecoveryPlan, PlannedPart
from tieredctl.ops.healing.object_writing import (
    FreshSegments,
    Quarantining,
    demand_held,
    put_or_replace,
)
from tieredctl.ops.healing.segments_in_turn import write_in_turn
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.store_check.local_stores import REMOTE_LOG_INDEX_CACHE
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.process.interruption import critical_section, mark_complete


@dataclass(slots=True, kw_only=True)
class RecoveredSegment(Outcome):
    """How much of the plan for one segment was applied."""

    plan: IndexRecoveryPlan
    written: list[Part] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """The keys of what was written, or may have been: the answer may be lost."""
    quarantined: dict[Part, str] = field(default_factory=dict)
    """The keys of the copies of what was replaced."""

    @property
    def others_left(self) -> int:
        """How many parts are not sound yet."""
        return len(self.plan.to_write()) - len(self.written) + len(self.plan.impossible())

    def rows(self) -> list[Document]:
        """The plan's rows, each with its outcome."""
        return [
            {
                **part.document(),
                "written": part.found.part in self.written,
                "quarantinedAs": self.quarantined.get(part.found.part),
            }
            for part in self.plan.parts
        ]


@dataclass(slots=True, kw_only=True)
class IndexRecoveryOutcome(Outcome):
    """How much of the plans was applied. Skipped are segments that were not looked at."""

    segments: list[RecoveredSegment] = field(default_factory=list)

    @property
    def others_left(self) -> int:
        """How many parts are not sound yet."""
        return sum(one.left for one in self.segments)

    @property
    def written(self) -> int:
        """How many objects were written."""
        return sum(len(one.written) for one in self.segments)


@dataclass(slots=True)
class IndexRecovery:
    """One run over the plans for some segments."""

    plans: Sequence[IndexRecoveryPlan]
    store: WritableObjectStore
    read_metadata: Callable[[], EventStream]
    """Reads the metadata once more, up to its current end offsets."""
    clock_ms: Callable[[], int]
    tell: Callable[[RecoveredSegment], None] = lambda _segment: None
    """Called with each segment that was come to."""
    key: bytes | None = None
    """Seals the notes of which bytes the copies hold."""
    cluster_id: str | None = None
    """The cluster that was confirmed, for metadata that names none."""

    def run(self, lease: Hold) -> IndexRecoveryOutcome:
        """Writes what the plans have to write; ends as `write_in_turn` does."""
        fresh = FreshSegments(self.read_metadata, self.clock_ms, self.cluster_id)
        outcome = IndexRecoveryOutcome(segments=[RecoveredSegment(plan=plan) for plan in self.plans])
        to_do = [one for one in outcome.segments if one.plan.to_write()]

        def recover(segment: RecoveredSegment) -> None:
            self._recover(segment, lease, fresh, is_last=segment is to_do[-1])

        write_in_turn(to_do, recover, self.tell, fresh, outcome)
        return outcome

    def _recover(self, segment: RecoveredSegment, lease: Hold, fresh: FreshSegments, *, is_last: bool) -> None:
        self._demand_unchanged(segment.plan, fresh)
        keep = Quarantining(self.store, self.key, fresh.cluster_id, segment.plan.metadata.segment_id)
        parts = segment.plan.to_write()
        for part in parts:
            lease.renew()
            with critical_section():
                self._write(part, segment, keep)
                segment.written.append(part.found.part)
                if is_last and part is parts[-1]:
                    mark_complete()

    def _demand_unchanged(self, plan: IndexRecoveryPlan, fresh: FreshSegments) -> None:
        """Raises TieredctlError where a segment changed since it was read: an object written for a segment that is
        being deleted would be left over."""
        segment_id = plan.metadata.segment_id
        if fresh.finished(segment_id).metadata != plan.metadata:
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, f"The metadata of segment {segment_id} changed since it was read."
            )
        log = plan.log
        if log is None or self.store.head(log.key) != log:
            message = f"The log of segment {segment_id} was rewritten since it was read."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _write(self, part: PlannedPart, outcome: RecoveredSegment, keep: Quarantining) -> None:
        if part.key is None or part.rebuilt is None:
            raise TypeError(f"{part.found.part} has nothing to write")
        copied_as = put_or_replace(self.store, part.key, part.rebuilt, part.stored, keep, outcome.tried)
        if copied_as is not None:
            outcome.quarantined[part.found.part] = copied_as
        demand_held(self.store, part.key, part.rebuilt)


_CACHED = (SegmentPart.OFFSET_INDEX, SegmentPart.TIME_INDEX, SegmentPart.TRANSACTION_INDEX)


def cached_file_names(metadata: RemoteLogSegmentMetadata) -> list[str]:
    """The files that a broker which has read the segment keeps in its cache."""
    return [index_cache_file_name(metadata.start_offset, metadata.segment_id, part) for part in _CACHED]


def cached_files(metadata: RemoteLogSegmentMetadata, log_dirs: Sequence[Path]) -> list[Path]:
    """The files of a segment that these brokers have cached."""
    paths = (log_dir / REMOTE_LOG_INDEX_CACHE / name for log_dir in log_dirs for name in cached_file_names(metadata))
    return [path for path in paths if path.exists()]

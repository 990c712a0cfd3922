"""Puts rebuilt indexes into the store: each as a whole, and never over an object without a copy in quarantine.

After an interruption another run continues: repaired parts are found sound, and a damaged object is copied to the same
place in quarantine as before.

Brokers' copies of a segment's indexes, in `remote-log-index-cache` of their first log directory and in memory.

Source: RemoteIndexCache. A broker fetches the three indexes once, when it first reads the segment, and keeps using
them, even after a restart, until they are evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart, index_cache_file_name
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.comparison import same_bytes
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.sealed_notes import copied_bytes, note_bytes
from tieredctl.ops.index_recovery.index_plan import IndexRecoveryPlan, PlannedPart, SegmentsOnce
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.store_check.local_stores import REMOTE_LOG_INDEX_CACHE
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import Capability, StoredObject, WritableObjectStore
from tieredctl.process.interruption import critical_section, mark_complete

LOOK_AGAIN_MS = 60_000
"""How old the metadata may be by which a segment is written to: reading it may take as long as many segments do."""
_OF_ONE_SEGMENT = (ErrorCode.WORLD_CHANGED, ErrorCode.UNKNOWN_SEGMENT, ErrorCode.USAGE)


@dataclass(slots=True, kw_only=True)
class RecoveredSegment(Outcome):
    """How much of the plan for one segment was applied."""

    plan: IndexRecoveryPlan
    written: list[Part] = field(default_factory=list)
    quarantined: dict[Part, str] = field(default_factory=dict)
    """The keys of the copies of what was replaced."""

    @property
    def left(self) -> int:
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
    """How much of the plans was applied."""

    segments: list[RecoveredSegment] = field(default_factory=list)

    @property
    def left(self) -> int:
        """How many parts are not sound yet."""
        return sum(one.left for one in self.segments)

    @property
    def written(self) -> int:
        """How many objects were written."""
        return sum(len(one.written) for one in self.segments)


def demand_conditional_writes(store: WritableObjectStore) -> None:
    """Raises TieredctlError `store-incapable` for a store that would overwrite an object written by others
    meanwhile."""
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, f"{store.url} does not support conditional writes.")


@dataclass(slots=True)
class IndexRecovery:
    """One run over the plans for some segments."""

    plans: Sequence[IndexRecoveryPlan]
    store: WritableObjectStore
    read_metadata: Callable[[], EventStream]
    """Reads the metadata once more, up to its current end offsets."""
    clock_ms: Callable[[], int] = lambda: 0
    tell: Callable[[RecoveredSegment], None] = lambda _segment: None
    """Called with each segment that was come to."""
    key: bytes | None = None
    """Seals the notes of which bytes the copies hold."""
    _known: SegmentsOnce | None = None
    _cluster_id: str | None = None
    _read_ms: int = 0

    def run(self, lease: Hold) -> IndexRecoveryOutcome:
        """Writes what the plans have to write. A segment that changed meanwhile is left alone. Whatever stops it, or
        the first such change, is in the outcome."""
        outcome = IndexRecoveryOutcome(segments=[RecoveredSegment(plan=plan) for plan in self.plans])
        to_do = [one for one in outcome.segments if one.plan.to_write()]
        for segment in to_do:
            try:
                self._recover(segment, lease, is_last=segment is to_do[-1])
            except TieredctlError as error:
                outcome.stopped = outcome.stopped or error
                if error.code not in _OF_ONE_SEGMENT:
                    break
            self.tell(segment)
        return outcome

    def _recover(self, segment: RecoveredSegment, lease: Hold, *, is_last: bool) -> None:
        self._demand_unchanged(segment.plan)
        parts = segment.plan.to_write()
        for part in parts:
            lease.renew()
            with critical_section():
                self._write(part, segment)
                segment.written.append(part.found.part)
                if is_last and part is parts[-1]:
                    mark_complete()

    def _demand_unchanged(self, plan: IndexRecoveryPlan) -> None:
        """Raises TieredctlError where a segment changed since it was read: an object written for a segment that is
        being deleted would be left over."""
        segment_id = plan.metadata.segment_id
        if self._now().finished(segment_id).metadata != plan.metadata:
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, f"The metadata of segment {segment_id} changed since it was read."
            )
        log = plan.log
        if log is None or self.store.head(log.key) != log:
            message = f"The log of segment {segment_id} was rewritten since it was read."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _now(self) -> SegmentsOnce:
        """What the metadata says, as of at most `LOOK_AGAIN_MS` ago."""
        if self._known is None or self.clock_ms() - self._read_ms >= LOOK_AGAIN_MS:
            self._read_ms = self.clock_ms()
            stream = self.read_metadata()
            self._known, self._cluster_id = SegmentsOnce.of(stream), stream.source.cluster_id
        return self._known

    def _write(self, part: PlannedPart, outcome: RecoveredSegment) -> None:
        if part.key is None or part.rebuilt is None:
            raise TypeError(f"{part.found.part} has nothing to write")
        if part.stored is None:
            done = self.store.put_if_absent(part.key, part.rebuilt)
        else:
            outcome.quarantined[part.found.part] = self._quarantine(part.stored, outcome.plan)
            done = self.store.replace(part.stored, part.rebuilt)
        # A retry after a lost answer finds the object already written.
        if done is None and not self._is_there(part.key, part.rebuilt):
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, f"{part.key} was written by another process since it was checked."
            )

    def _quarantine(self, stored: StoredObject, plan: IndexRecoveryPlan) -> str:
        """Copies an object to quarantine; returns the copy's key."""
        version = sha256(stored.version.encode()).hexdigest()[:12]
        plan_id = f"{plan.metadata.segment_id}-{version}"
        key = quarantine_key(self._cluster_id, plan_id, stored)
        copy = self.store.copy(stored, key)
        compared = None if copy is None else same_bytes(self.store, stored, copy)
        if copy is None or compared is None:
            message = f"{stored.key} could not be copied to quarantine and was not changed."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        note_bytes(self.store, self.key, plan_id, [copied_bytes(copy, compared.checksums)])
        return key

    def _is_there(self, key: str, data: bytes) -> bool:
        stored = self.store.head(key)
        return stored is not None and stored.size == len(data) and self.store.read(key) == data


_CACHED = (SegmentPart.OFFSET_INDEX, SegmentPart.TIME_INDEX, SegmentPart.TRANSACTION_INDEX)


def cached_file_names(metadata: RemoteLogSegmentMetadata) -> list[str]:
    """The files that a broker which has read the segment keeps in its cache."""
    return [index_cache_file_name(metadata.start_offset, metadata.segment_id, part) for part in _CACHED]


def cached_files(metadata: RemoteLogSegmentMetadata, log_dirs: Sequence[Path]) -> list[Path]:
    """The files of a segment that these brokers have cached."""
    paths = (log_dir / REMOTE_LOG_INDEX_CACHE / name for log_dir in log_dirs for name in cached_file_names(metadata))
    return [path for path in paths if path.exists()]

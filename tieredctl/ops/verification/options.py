"""How to verify.

Segments whose objects tieredctl itself removed, by its own notes in the store: nothing of them is missing.

Whoever may write to a store may write such notes, and hide a loss behind them: what only a note without the seal of the
user's key says stays a warning. Of a segment that the metadata promises that holds only where its topic is not known to
exist: of a live one, nothing should have been removed. Copies and deletions that never ended stay in the metadata for
ever, of live topics too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.uuid_columns import UuidColumns
from tieredctl.formats.windows import Flags
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import TopicSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES, TopicSources
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.accepted_losses import AcceptedLosses, NothingAccepted
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level


class RemovedBy(NamedTuple):
    """A plan that removed something, by a note in the store."""

    plan_id: str
    is_sealed: bool
    """Whether the user's key sealed the note."""


class RemovedObjects(Protocol):
    """What tieredctl noted in a store that it removed from there."""

    def plan_of(self, key: str) -> RemovedBy | None:
        """A plan that removed an object, and that nothing put back since; None where none did."""
        ...


class NothingRemoved:
    """Where there are no notes."""

    def plan_of(self, _key: str) -> None:
        return None


@dataclass
class RemovedSegments:
    """The segments whose objects were removed, and how many there were of each topic and plan."""

    read: Callable[[], RemovedObjects]
    """Asked only where something is missing."""
    _found: Counter[tuple[str, str, RemovedBy]] = field(default_factory=Counter)

    def plan_of_all(self, keys: Sequence[str]) -> RemovedBy | None:
        """The plan that removed the last of these objects, if all of them were removed; sealed if all of that is."""
        plans = [plan for key in keys if (plan := self._notes.plan_of(key)) is not None]
        if not plans or len(plans) < len(keys):
            return None
        return plans[-1]._replace(is_sealed=all(plan.is_sealed for plan in plans))

    def plan_of_any(self, keys: Iterable[str]) -> RemovedBy | None:
        """A plan that removed any of these objects."""
        return next((plan for key in keys if (plan := self._notes.plan_of(key)) is not None), None)

    def add(self, partition: TopicIdPartition, plan: RemovedBy) -> None:
        """Counts one segment."""
        self._found[partition.topic, partition.topic_id, plan] += 1

    def findings(self) -> list[Finding]:
        """One for each topic and plan."""
        return [_finding(*named, count) for named, count in sorted(self._found.items())]

    @cached_property
    def _notes(self) -> RemovedObjects:
        return self.read()


def _finding(topic: str, topic_id: str, plan: RemovedBy, segments: int) -> Finding:
    have, pronoun = counted(segments, "segment"), "it" if segments == 1 else "them"
    message = f"objects of {have} were removed by plan {plan.plan_id}; the metadata still names {pronoun}"
    if not plan.is_sealed:
        message += ". Your key did not seal that note: whoever may write to the store may have made it"
    evidence = {"topic": topic, "topicId": topic_id, "planId": plan.plan_id, "segments": segments}
    evidence["isSealed"] = plan.is_sealed
    severity = None if plan.is_sealed else Severity.WARNING
    about = TopicSubject(topic, topic_id)
    return Finding(FindingCode.OBJECT_REMOVED, f"{topic} {topic_id}", message, evidence, severity, about)


_HASH_RANGE = 1 << 32


@dataclass(frozen=True, slots=True)
class Subset:
    """A share of all segments that a run reads, chosen by their ids: `number` of `count` equal shares, from 1."""

    number: int = 1
    count: float = 1

    @classmethod
    def parse(cls, text: str) -> Subset:
        """`3/30`, or `5%` which is the first twentieth. Raises TieredctlError."""
        try:
            if text.endswith("%"):
                subset = cls(1, 100 / float(text[:-1]))
            else:
                number, _, count = text.partition("/")
                subset = cls(int(number), int(count))
        except (ValueError, ZeroDivisionError):
            subset = cls(0)
        if not 1 <= subset.number <= subset.count:
            raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a subset.", hint="Write it as 3/30 or 5%.")
        return subset

    @property
    def is_all(self) -> bool:
        """Whether it leaves out no segment."""
        return self.count == 1

    def has(self, segment_id: str) -> bool:
        """Whether a segment is in it."""
        return self._has(uuid_bytes(segment_id))

    def has_each(self, segment_ids: UuidColumns) -> Flags:
        """Whether each segment is."""
        return np.array([self._has(segment_ids.bytes_of(row)) for row in range(len(segment_ids))], np.bool_)

    def _has(self, segment_id: bytes) -> bool:
        share = crc32c(segment_id) * self.count / _HASH_RANGE
        return self.number - 1 <= share < self.number


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to verify."""

    level: Level
    clock: Clock
    selection: Selection = Selection()
    subset: Subset = Subset()
    index_interval_bytes: int = DEFAULT_INDEX_INTERVAL_BYTES
    local_logs: Mapping[TopicIdPartition, LocalLog] = field(default_factory=dict)
    topic_sources: TopicSources = NO_TOPIC_SOURCES
    """Knows which topics were deleted: of their segments nothing is missing."""
    read_accepted: Callable[[], AcceptedLosses] = NothingAccepted
    """Gives which lost objects were accepted as lost; asked only where something is lost."""
    read_removed: Callable[[], RemovedObjects] = NothingRemoved
    """Gives what tieredctl removed from the store, which is not missing either."""

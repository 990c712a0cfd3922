"""Segments whose objects tieredctl itself removed, by its own notes in the store: nothing of them is missing.

Of a segment that the metadata promises that holds only where its topic is not known to exist: of a live one, nothing
should have been removed. Copies and deletions that never ended stay in the metadata for ever, of live topics too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import TopicSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition


class RemovedObjects(Protocol):
    """What tieredctl noted in a store that it removed from there."""

    def plan_of(self, key: str) -> str | None:
        """The id of a plan that removed an object, and that nothing put back since; None where none did."""
        ...


class NothingRemoved:
    """Where there are no notes."""

    def plan_of(self, _key: str) -> None:
        return None


@dataclass
class RemovedSegments:
    """Which segments' objects were removed, and how many there were of each topic and plan."""

    read: Callable[[], RemovedObjects]
    """Asked only where something is missing."""
    _found: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def plan_of_all(self, keys: Sequence[str]) -> str | None:
        """The plan that removed the last of these objects, if all of them were removed."""
        plans = [self.plan_of(key) for key in keys]
        return plans[-1] if plans and None not in plans else None

    def plan_of_any(self, keys: Iterable[str]) -> str | None:
        """A plan that removed any of these objects."""
        return next((plan for key in keys if (plan := self.plan_of(key)) is not None), None)

    def plan_of(self, key: str) -> str | None:
        """The plan that removed one object."""
        return self._notes.plan_of(key)

    def add(self, partition: TopicIdPartition, plan_id: str) -> None:
        """Counts one segment."""
        self._found[partition.topic, partition.topic_id, plan_id] += 1

    def findings(self) -> list[Finding]:
        """One for each topic and plan."""
        return [_finding(*named, count) for named, count in sorted(self._found.items())]

    @cached_property
    def _notes(self) -> RemovedObjects:
        return self.read()


def _finding(topic: str, topic_id: str, plan_id: str, segments: int) -> Finding:
    have, pronoun = counted(segments, "segment"), "it" if segments == 1 else "them"
    message = f"objects of {have} were removed by plan {plan_id}; the metadata still names {pronoun}"
    evidence = {"topic": topic, "topicId": topic_id, "planId": plan_id, "segments": segments}
    about = TopicSubject(topic, topic_id)
    return Finding(FindingCode.OBJECT_REMOVED, f"{topic} {topic_id}", message, evidence, about=about)

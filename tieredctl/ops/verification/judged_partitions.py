"""The partitions that are judged, numbered, and where each listed object stands among them by its key."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.windows import Flags
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.ids import ZERO_UUID, TopicIdPartition
from tieredctl.ops.metadata.coverage import MISSING, MetadataCoverage, numbers_text
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

PARTS = tuple(Part)
"""A part's place here is its number in columns."""
NO_PARTITION = -1
NO_PART = len(PARTS)
Masks = NDArray[np.uint16]
"""Sets of parts, a bit each."""


class Place(IntEnum):
    """Where an object's key puts it."""

    UNEXPLAINED = 0
    NOT_SELECTED = 1
    ELSEWHERE = 2
    """Its partition's events may be in metadata that is not here."""
    STRANGE = 3
    """Its partition is in no metadata."""
    JUDGED = 4


def mask_of(parts: Sequence[Part]) -> int:
    """A bit for each part."""
    return sum(1 << PARTS.index(part) for part in parts)


@dataclass(frozen=True)
class JudgedPartitions:
    """The partitions that a run judges; those of the metadata have the numbers that they have there."""

    layout: Layout
    partitions: Sequence[TopicIdPartition]
    in_order: Sequence[TopicIdPartition]
    """Those that are judged, as they are looked at where nothing of them is listed."""
    are_gone: Flags
    """Whether each number's topic is known to be deleted: nothing is promised of it."""

    @cached_property
    def promised(self) -> Masks:
        """The parts that the layout promises of each one's segments."""
        return self._masks("promised_objects")

    @cached_property
    def optional(self) -> Masks:
        """Optional parts."""
        return self._masks("optional_objects")

    @cached_property
    def numbers(self) -> dict[TopicIdPartition, int]:
        """The numbers of those that are judged."""
        numbers = {partition: number for number, partition in enumerate(self.partitions)}
        return {partition: numbers[partition] for partition in self.in_order}

    def _masks(self, objects: str) -> Masks:
        asked = getattr(self.layout, objects)
        return np.array([mask_of(list(asked(any_segment(one)))) for one in self.partitions], np.uint16)


def any_segment(partition: TopicIdPartition) -> ExplainedKey:
    """What stands for each segment of a partition that has no custom metadata."""
    return ExplainedKey(partition.topic, partition.topic_id, partition.partition, 0, ZERO_UUID, Part.LOG)


@dataclass
class KeyPlaces:
    """Where the stems of keys stand (`KeyColumns`); each is found out when it is met first."""

    judged: JudgedPartitions
    selection: Selection
    elsewhere: Elsewhere
    topic_ids: Container[str]
    """The ids of the topics in the metadata."""
    places: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    partitions: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    parts: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    of_known_topics: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))

    def extend(self, explained: Sequence[ExplainedKey | None]) -> None:
        """`explained` begins with those that are known already."""
        new = explained[len(self.places) :]
        if not new:
            return
        places = [self._place(one) for one in new]
        self.places = np.append(self.places, np.array(places, np.int8))
        self.partitions = np.append(self.partitions, np.array([self._number(one) for one in new], np.int32))
        parts = [PARTS.index(one.part) if one else NO_PART for one in new]
        self.parts = np.append(self.parts, np.array(parts, np.int8))
        of_known_topics = [
            one is not None and place in (Place.STRANGE, Place.JUDGED) and one.topic_id in self.topic_ids
            for one, place in zip(new, places, strict=True)
        ]
        self.of_known_topics = np.append(self.of_known_topics, np.array(of_known_topics, np.bool_))

    def _place(self, explained: ExplainedKey | None) -> Place:
        if explained is None:
            return Place.UNEXPLAINED if self.selection == Selection() else Place.NOT_SELECTED
        partition = explained.topic_id_partition
        if not self.selection.has(partition):
            return Place.NOT_SELECTED
        if self.elsewhere.may_have(partition):
            return Place.ELSEWHERE
        return Place.JUDGED if partition in self.judged.numbers else Place.STRANGE

    def _number(self, explained: ExplainedKey | None) -> int:
        if explained is None:
            return NO_PARTITION
        return self.judged.numbers.get(explained.topic_id_partition, NO_PARTITION)


@dataclass(slots=True)
class Elsewhere:
    """Partitions that are not judged; `objects` of them were listed."""

    metadata: ReplayedMetadata
    coverage: MetadataCoverage
    objects: int = 0

    def may_have(self, partition: TopicIdPartition) -> bool:
        """Whether a partition has no events here and may have events elsewhere."""
        has_events = partition in self.metadata.caches or partition in self.metadata.partition_deletes
        return not has_events and self.coverage.may_be_elsewhere(partition.topic_id, partition.partition)

    def findings(self) -> list[Finding]:
        """The finding for them, where no other finding reports missing metadata."""
        if not self.objects or self.coverage.is_broken:
            return []
        objects = counted(self.objects, "object belongs", "objects belong")
        message = (
            f"{objects} to partitions without events in the metadata partitions that are here "
            f"({numbers_text(self.coverage.here)}); their events may be in other metadata partitions"
        )
        evidence = {"metadataPartitions": list(self.coverage.here), "objects": self.objects}
        return [Finding(MISSING, METADATA_TOPIC, message, evidence)]

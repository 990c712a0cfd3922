"""What findings are about, as values: findings are sorted, compared and confirmed by these, never by their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tieredctl.model.ids import TopicIdPartition

Offsets = tuple[int, int]
"""The first and the last (inclusive)."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that only the finding's text names."""

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Topic, topic id, partition and first offset, to sort by; empty and -1 where there are none."""
        return ("", "", -1, -1)

    @property
    def segment_ids(self) -> tuple[str, ...]:
        """The segments whose state the finding depends on."""
        return ()

    @property
    def count(self) -> int:
        """How many things the finding is about."""
        return 1

    @property
    def remedy(self) -> str | None:
        """The command that shows more of it; None where that follows from the finding's code."""
        return None


@dataclass(frozen=True, slots=True)
class TopicSubject(Subject):
    """One incarnation of a topic."""

    topic: str
    topic_id: str

    @property
    def place(self) -> tuple[str, str, int, int]:
        return (self.topic, self.topic_id, -1, -1)


@dataclass(frozen=True, slots=True)
class PartitionSubject(Subject):
    """A partition, or some of its offsets."""

    partition: TopicIdPartition
    offsets: Offsets | None = None

    @property
    def place(self) -> tuple[str, str, int, int]:
        named = self.partition
        return (named.topic, named.topic_id, named.partition, _first(self.offsets))


@dataclass(frozen=True, slots=True)
class SegmentSubject(PartitionSubject):
    """A segment, one of its parts, or the seam between it and the one before."""

    segment_id: str = ""
    part: str | None = None
    """None where the finding is about the segment as a whole."""
    key: str | None = None
    """The object that holds the part."""
    previous_segment_id: str | None = None

    @property
    def segment_ids(self) -> tuple[str, ...]:
        return tuple(one for one in (self.segment_id, self.previous_segment_id) if one)


@dataclass(frozen=True, slots=True)
class SegmentsSubject(Subject):
    """Several segments together, as of a partition."""

    ids: tuple[str, ...]

    @property
    def segment_ids(self) -> tuple[str, ...]:
        return self.ids


@dataclass(frozen=True, slots=True)
class ObjectSubject(Subject):
    """An object that no segment explains."""

    key: str


@dataclass(frozen=True, slots=True)
class OrphanedObjects(Subject):
    """Orphaned objects of one cause, all together."""

    objects: int

    @property
    def count(self) -> int:
        return self.objects

    @property
    def remedy(self) -> str:
        return "tieredctl orphans plan --to orphans.plan …"


@dataclass(frozen=True, slots=True)
class UnknownObjects(Subject):
    """Objects that are unknown for one reason, all together."""

    objects: int

    @property
    def count(self) -> int:
        return self.objects


@dataclass(frozen=True, slots=True)
class BackupSetSubject(Subject):
    """A backup set, or what it needs."""

    number: int


@dataclass(frozen=True, slots=True)
class StoreSubject(Subject):
    """A store, or as much of it as did not answer."""

    @property
    def remedy(self) -> str:
        return "tieredctl remote ls …"


@dataclass(frozen=True, slots=True)
class MetadataSubject(Subject):
    """A metadata partition, some of its offsets, or one of its events."""

    metadata_partition: int
    metadata_offset: int | None = None
    offsets: Offsets | None = None
    segment_id: str | None = None
    """The segment that the event is about."""

    @property
    def place(self) -> tuple[str, str, int, int]:
        return ("", "", -1, _first(self.offsets))

    @property
    def segment_ids(self) -> tuple[str, ...]:
        return (self.segment_id,) if self.segment_id else ()


@dataclass(frozen=True, slots=True)
class SettingSubject(Subject):
    """A setting of a broker or a topic."""

    name: str
    wanted: str | None = None
    """The value that the remedy sets."""


def read_subject(_text: str, evidence: Mapping[str, Any]) -> Subject:
    """The subject of a finding that was written, by its evidence: a segment's part, a store, or metadata; for any other
    only that its text names it. Raises KeyError, TypeError and ValueError for evidence that no finding has."""
    if evidence.keys() >= {"segmentId", "part", "key"}:
        return SegmentSubject(
            TopicIdPartition(evidence["topicId"], evidence["topic"], evidence["partition"]),
            offsets_of(evidence),
            evidence["segmentId"],
            evidence["part"] if "storedSize" not in evidence else None,
            evidence["key"],
        )
    if (number := evidence.get("metadataPartition")) is None:
        return StoreSubject() if "store" in evidence else Subject()
    offset = evidence.get("metadataOffset")
    offset = None if offset is None else int(offset)
    return MetadataSubject(int(number), offset, offsets_of(evidence), evidence.get("segmentId"))


def _first(offsets: Offsets | None) -> int:
    return -1 if offsets is None else offsets[0]


def offsets_of(evidence: Mapping[str, Any]) -> Offsets | None:
    """The offsets that a finding's evidence names, if any."""
    if evidence.get("offsets") is None:
        return None
    first, last = evidence["offsets"]
    return int(first), int(last)

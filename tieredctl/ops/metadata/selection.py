"""Which topics, partitions and segments a command is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.coverage import MetadataCoverage


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters that must all hold; None holds always."""

    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    segment_id: str | None = None

    def __str__(self) -> str:
        """`topic orders, partition 3`."""
        named = {
            "topic": self.topic,
            "topic id": self.topic_id,
            "partition": self.partition,
            "segment": self.segment_id,
        }
        return ", ".join(f"{name} {value}" for name, value in named.items() if value is not None)

    def has(self, partition: TopicIdPartition) -> bool:
        return (
            self.topic in (None, partition.topic)
            and self.topic_id in (None, partition.topic_id)
            and self.partition in (None, partition.partition)
        )

    def names_segment(self, segment_id: str) -> bool:
        """Whether a segment of a partition that is selected is."""
        return self.segment_id in (None, segment_id)

    def known_besides(self, known: Iterable[TopicIdPartition]) -> str:
        """The known partitions of a selected topic when the selected one is unknown: words after a sentence."""
        others = sorted({one.partition for one in known if replace(self, partition=None, segment_id=None).has(one)})
        if self.partition is None or not others or not (self.topic or self.topic_id):
            return ""
        listed = ", ".join(map(str, others))
        return f"; of that topic the metadata knows {'partition' if len(others) == 1 else 'partitions'} {listed}"

    def has_segment(self, partition: TopicIdPartition, segment_id: str) -> bool:
        return self.names_segment(segment_id) and self.has(partition)


def one_partition(
    known: Iterable[TopicIdPartition], selection: Selection, coverage: MetadataCoverage
) -> TopicIdPartition:
    """The one partition that a selection of topic and partition means.

    Raises TieredctlError where none is known, or where the topic was recreated and its name means several;
    `metadata-incomplete` where it may be in metadata that is not here.
    """
    candidates = list(known)
    found = [partition for partition in candidates if selection.has(partition)]
    if len(found) > 1:
        ids = ", ".join(sorted(partition.topic_id for partition in found))
        raise TieredctlError(
            ErrorCode.AMBIGUOUS_TOPIC, f"Topic {selection.topic} was recreated: it has the topic ids {ids}."
        )
    if not found:
        why = _why_unknown(candidates, selection)
        coverage.demand_all(why)
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, why)
    return found[0]


def _why_unknown(known: list[TopicIdPartition], selection: Selection) -> str:
    named = f"{selection.topic}:{selection.partition}"
    partitions = sorted({tip.partition for tip in known if tip.topic == selection.topic})
    if partitions:
        listed = ", ".join(map(str, partitions))
        numbered = f"{'partition' if len(partitions) == 1 else 'partitions'} {listed}"
        return f"The metadata has no event of {named}; of topic {selection.topic} it knows {numbered}."
    return f"The metadata has no event of topic {selection.topic}."

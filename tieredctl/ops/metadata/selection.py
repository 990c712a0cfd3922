"""Which topics, partitions and segments a command is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.coverage import MetadataCoverage, numbers_text


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

    def document(self) -> Document:
        """What a summary says of it, so that a part is never taken for the whole; nothing where all is selected."""
        return {"selection": str(self), "selectedOnly": True} if self != Selection() else {}

    def has(self, partition: TopicIdPartition) -> bool:
        return (
            self.topic in (None, partition.topic)
            and self.topic_id in (None, partition.topic_id)
            and self.partition in (None, partition.partition)
        )

    def names_segment(self, segment_id: str) -> bool:
        """Whether a segment of a partition that is selected is."""
        return self.segment_id in (None, segment_id)

    @property
    def partitions(self) -> Selection:
        """The same without the segment."""
        return replace(self, segment_id=None)

    def demand_known(self, known: Collection[TopicIdPartition], said: str, hint: str | None = None) -> None:
        """Raises TieredctlError `unknown-topic` if no partition is selected among those that are known, with the
        nearest names, else a `hint`: a typo must not look like a clean result. `said` begins the sentence: `The
        metadata has no event of`."""
        if self.partitions != Selection() and not any(map(self.has, known)):
            raise self.unknown(known, said, hint)

    def unknown(self, known: Collection[TopicIdPartition], said: str, hint: str | None = None) -> TieredctlError:
        """The error of `demand_known`."""
        others = [one for one in known if replace(self.partitions, partition=None).has(one)]
        if self.topic is not None and not others:
            ids = sorted({one.topic_id for one in known if one.topic == self.topic})
            alike = nearest_hint(self.topic, {one.topic for one in known})
            of_topic = f"Topic {self.topic} has the {'id' if len(ids) == 1 else 'ids'} {', '.join(ids)}."
            hint = of_topic if ids else alike or hint
        besides = _besides(others) if self.topic or self.topic_id else ""
        return TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"{said} {self.partitions}{besides}.", hint=hint)

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
        alike = nearest_hint(selection.topic, {one.topic for one in candidates})
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, why, hint=alike)
    return found[0]


def _besides(known: Iterable[TopicIdPartition]) -> str:
    """The partitions of a topic whose selected one is unknown, after a sentence."""
    numbers = sorted({one.partition for one in known})
    if not numbers:
        return ""
    are = "is partition" if len(numbers) == 1 else "are partitions"
    return f"; of that topic there {are} {numbers_text(numbers)}"


def _why_unknown(known: list[TopicIdPartition], selection: Selection) -> str:
    named = f"{selection.topic}:{selection.partition}"
    partitions = sorted({tip.partition for tip in known if tip.topic == selection.topic})
    if partitions:
        listed = ", ".join(map(str, partitions))
        numbered = f"{'partition' if len(partitions) == 1 else 'partitions'} {listed}"
        return f"The metadata has no event of {named}; of topic {selection.topic} it knows {numbered}."
    return f"The metadata has no event of topic {selection.topic}."

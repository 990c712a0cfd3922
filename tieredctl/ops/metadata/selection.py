"""The topics, partitions and segments that a command is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.completeness import ReadStream, demand_nothing_lost
from tieredctl.ops.metadata.coverage import numbers_text


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters that must all hold. A filter holds for each of its values; without any, always."""

    topics: tuple[str, ...] = ()
    topic_ids: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """The numbers of partitions."""
    segment_ids: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        topic: str | None = None,
        topic_id: str | None = None,
        partition: int | None = None,
        segment_id: str | None = None,
    ) -> Selection:
        """A selection with one value each; None filters nothing."""
        return cls(
            () if topic is None else (topic,),
            () if topic_id is None else (topic_id,),
            () if partition is None else (partition,),
            () if segment_id is None else (segment_id,),
        )

    @classmethod
    def given(
        cls,
        topics: Collection[str] | None,
        topic_ids: Collection[str] | None,
        partitions: Collection[int] | None = None,
        segment_ids: Collection[str] | None = None,
    ) -> Selection:
        """A selection as options were given, in their order; None, or nothing, filters nothing."""
        topics, topic_ids, segment_ids = (tuple(dict.fromkeys(one or ())) for one in (topics, topic_ids, segment_ids))
        return cls(topics, topic_ids, tuple(sorted({*(partitions or ())})), segment_ids)

    def __str__(self) -> str:
        """`topic orders, partitions 3, 4`."""
        named: dict[tuple[str, str], tuple[object, ...]] = {
            ("topic", "topics"): self.topics,
            ("topic id", "topic ids"): self.topic_ids,
            ("partition", "partitions"): self.numbers,
            ("segment", "segments"): self.segment_ids,
        }
        return ", ".join(
            f"{one if len(values) == 1 else several} {', '.join(map(str, values))}"
            for (one, several), values in named.items()
            if values
        )

    def document(self) -> Document:
        """What a summary says of it, so that a part is never taken for the whole; nothing where all is selected."""
        return {"selection": str(self), "selectedOnly": True} if self != Selection() else {}

    def has(self, partition: TopicIdPartition) -> bool:
        return (
            (not self.topics or partition.topic in self.topics)
            and (not self.topic_ids or partition.topic_id in self.topic_ids)
            and (not self.numbers or partition.partition in self.numbers)
        )

    def names_segment(self, segment_id: str) -> bool:
        """Whether a segment of a partition that is selected is."""
        return not self.segment_ids or segment_id in self.segment_ids

    @property
    def partitions(self) -> Selection:
        """The selection without its segments."""
        return replace(self, segment_ids=())

    @property
    def names_several(self) -> bool:
        """Whether a filter has several values, of which one may be known and another not."""
        return max(map(len, (self.topics, self.topic_ids, self.numbers, self.segment_ids))) > 1

    def each(self) -> Iterator[Selection]:
        """A selection for each value of a topic, topic id or partition: each that was named must be known."""
        partitions = self.partitions
        yield from (replace(partitions, topics=(one,)) for one in self.topics)
        yield from (replace(partitions, topic_ids=(one,)) for one in self.topic_ids)
        yield from (replace(partitions, numbers=(one,)) for one in self.numbers)

    def demand_known(self, present: Collection[TopicIdPartition], sentence: str, hint: str | None = None) -> None:
        """Raises TieredctlError `unknown-topic` if a topic, an id or a partition that was named is not among those
        that are known, with the nearest names, else a `hint`: a typo must not look like a clean result, nor vanish
        beside what is known. `sentence` is what comes before the name: `The metadata has no event of`."""
        for one in self.each():
            if not any(map(one.has, present)):
                raise one.unknown(present, sentence, hint)

    def unknown(self, present: Collection[TopicIdPartition], sentence: str, hint: str | None = None) -> TieredctlError:
        """The error of `demand_known`."""
        others = [one for one in present if replace(self.partitions, numbers=()).has(one)]
        if self.topics and not others:
            names = {one.topic for one in present}
            ids = sorted({one.topic_id for one in present if one.topic in self.topics})
            alike = next((nearest for topic in self.topics if (nearest := nearest_hint(topic, names))), None)
            of_topic = f"Topic {', '.join(self.topics)} has the {'id' if len(ids) == 1 else 'ids'} {', '.join(ids)}."
            hint = of_topic if ids else alike or hint
        besides = _besides(others) if self.topics or self.topic_ids else ""
        return TieredctlError(ErrorCode.UNKNOWN_TOPIC, f"{sentence} {self.partitions}{besides}.", hint=hint)

    def has_segment(self, partition: TopicIdPartition, segment_id: str) -> bool:
        return self.names_segment(segment_id) and self.has(partition)


class ReadPartitions(ReadStream, Protocol):
    """Events that were read, and the partitions that they are about, selected or not."""

    @property
    def partitions(self) -> Collection[TopicIdPartition]: ...


def one_partition(
    present: Iterable[TopicIdPartition], selection: Selection, stream: ReadPartitions
) -> TopicIdPartition:
    """The one partition that a selection of one topic and partition means, of those that a stream made known.

    Raises TieredctlError where none is known, or where the topic was recreated and its name means several;
    `metadata-incomplete` where it may be in metadata that is not here, or was lost.
    """
    candidates = list(present)
    selected = [partition for partition in candidates if selection.has(partition)]
    if len(selected) > 1:
        ids = ", ".join(sorted(partition.topic_id for partition in selected))
        raise TieredctlError(
            ErrorCode.AMBIGUOUS_TOPIC, f"Topic {selection.topics[0]} was recreated: it has the topic ids {ids}."
        )
    if not selected:
        why = _why_unknown(candidates, selection)
        demand_nothing_lost(stream, why)
        alike = nearest_hint(selection.topics[0], {one.topic for one in (*candidates, *stream.partitions)})
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, why, hint=alike)
    selection.demand_known(candidates, "The metadata has no event of")
    return selected[0]


def _besides(present: Iterable[TopicIdPartition]) -> str:
    """The partitions of a topic whose selected one is unknown, after a sentence."""
    numbers = sorted({one.partition for one in present})
    if not numbers:
        return ""
    are = "is partition" if len(numbers) == 1 else "are partitions"
    return f"; of that topic there {are} {numbers_text(numbers)}"


def _why_unknown(present: list[TopicIdPartition], selection: Selection) -> str:
    topic = selection.topics[0]
    partitions = sorted({tip.partition for tip in present if tip.topic == topic})
    if partitions:
        listed = ", ".join(map(str, partitions))
        numbered = f"{'partition' if len(partitions) == 1 else 'partitions'} {listed}"
        named = f"{topic}:{numbers_text(selection.numbers)}" if selection.numbers else str(selection.partitions)
        return f"The metadata has no event of {named}; of topic {topic} it knows {numbered}."
    return f"The metadata has no event of topic {topic}."

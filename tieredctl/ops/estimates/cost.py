"""`estimate cost`: a month's cost of storing and copying, by topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.prices import StoragePrice
from tieredctl.model.result_row import Column, ResultRow, SizeOrUnknown
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.orphans.noncurrent import MOST_ENTRIES, Noncurrent
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import Versioning
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

DAYS_A_MONTH = 30
_DAY_MS = 86_400_000
_DIGITS = 2


@dataclass(slots=True)
class TopicFigures:
    """A topic's segments in COPY_SEGMENT_FINISHED, and how many copies began in the last month."""

    name: str
    segments: int = 0
    bytes: int = 0
    """The bytes of those whose sizes are known."""
    segments_of_unknown_size: int = 0
    first_event_ms: int | None = None
    copies: int = 0
    objects: int = 0
    """Per segment, as the layout promises them of the copy that began last."""
    last_copy: tuple[int, int] = (-1, -1)
    """Metadata partition and offset of the event with which that began."""

    def add(self, other: TopicFigures) -> None:
        """Those of other partitions of the topic."""
        self.segments += other.segments
        self.bytes += other.bytes
        self.segments_of_unknown_size += other.segments_of_unknown_size
        self.copies += other.copies
        times = [one for one in (self.first_event_ms, other.first_event_ms) if one is not None]
        self.first_event_ms = min(times, default=None)
        if other.last_copy > self.last_copy:
            self.objects, self.last_copy = other.objects, other.last_copy

    def copies_per_day(self, now_ms: int) -> float:
        """Over the last month, or the topic's life if shorter; less than a day counts as one."""
        life_ms = now_ms - self.first_event_ms if self.first_event_ms is not None else 0
        return self.copies * _DAY_MS / min(max(life_ms, _DAY_MS), DAYS_A_MONTH * _DAY_MS)


@dataclass(frozen=True, slots=True)
class TopicCost(ResultRow):
    """What a topic costs for a month."""

    topic: str
    topic_id: Annotated[str, Column(wide=True, after="topic")]
    segments: int
    bytes: SizeOrUnknown
    storage_cost: Annotated[float | None, Column(may_be_unknown=True)]
    copies_per_day: float
    objects_a_segment: int
    puts: int
    puts_cost: float | None
    currency: str


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """One row per topic, and all together."""

    rows: Sequence[TopicCost]
    summary: Document


def cost_estimate(
    stream: EventStream,
    selection: Selection,
    layout: Layout,
    price: StoragePrice,
    now_ms: int,
    *,
    kept: Noncurrent | TieredctlError,
    reads_per_day: int | None = None,
) -> CostEstimate:
    """What the selected topics cost for a month, as large as they are and copied at the last month's rate.

    Bytes are those of the logs as the brokers had them: compression by the layout is unknown. One write request is
    counted for each object that the layout promises per segment; multipart uploads take more. Reads are not in the
    metadata: they are as `reads_per_day` states. `kept` is what the store keeps of deleted objects, or why that is
    unknown.
    """
    figures = topic_figures(replayed(stream, selection), layout, now_ms)
    topics = sorted(figures.items(), key=lambda one: one[1].name)
    rows = [cost_row(topic_id, topic, price, now_ms) for topic_id, topic in topics]
    gets = None if reads_per_day is None else reads_per_day * DAYS_A_MONTH
    gets_cost = None if gets is None else price.gets_cost(gets)
    least = [price.monthly_cost(topic.bytes) for _, topic in topics]
    parts = [cost for cost in (*least, *(row.puts_cost for row in rows)) if cost is not None]
    unknown = sum(topic.segments_of_unknown_size for _, topic in topics)
    noncurrent = {} if isinstance(kept, TieredctlError) else kept.document()
    others = (gets_cost, noncurrent.get("monthlyCost"))
    known_costs = [*parts, *(cost for cost in others if cost is not None)]
    summary = {
        "bytes": known_sum(row.bytes for row in rows),
        "puts": sum(row.puts for row in rows),
        "gets": gets,
        "getsCost": gets_cost,
        "noncurrent": noncurrent or None,
        "cost": round(sum(known_costs), _DIGITS),
        "currency": price.currency,
        "notKnown": [*_not_known(price, gets, unknown), *_not_known_of_kept(kept)],
    }
    return CostEstimate(rows, summary)


def topic_figures(metadata: ReplayedMetadata, layout: Layout, now_ms: int) -> dict[str, TopicFigures]:
    """The figures of each topic id in some metadata, which is described; those of partitions apart can be added."""
    topics = dict[str, TopicFigures]()
    starts = metadata.events.buckets.starts()
    owners, times = starts.partitions.tolist(), metadata.events.contents.starts.said.event_timestamps.values
    lasts: dict[str, int] = {}
    for row, (owner, moment) in enumerate(zip(owners, times[starts.contents].tolist(), strict=True)):
        partition = metadata.partitions[owner]
        topic = _of(topics, partition)
        topic.first_event_ms = moment if topic.first_event_ms is None else min(topic.first_event_ms, moment)
        topic.copies += moment > now_ms - DAYS_A_MONTH * _DAY_MS
        lasts[partition.topic_id] = row
    last_starts = starts.at(np.array(list(lasts.values()), np.int64))
    places = zip(last_starts.metadata_partitions.tolist(), last_starts.metadata_offsets.tolist(), strict=True)
    for topic_id, event, place in zip(lasts, metadata.started(last_starts), places, strict=True):
        topics[topic_id].objects = len(layout.promised_objects(event))
        topics[topic_id].last_copy = place
    finished = np.flatnonzero(metadata.rows.states == RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
    sizes = metadata.sizes(finished).tolist()
    for owner, size in zip(metadata.rows.partitions[finished].tolist(), sizes, strict=True):
        topic = _of(topics, metadata.partitions[owner])
        topic.segments += 1
        topic.bytes += max(size, 0)
        topic.segments_of_unknown_size += size < 0
    return topics


def _of(topics: dict[str, TopicFigures], partition: TopicIdPartition) -> TopicFigures:
    return topics.setdefault(partition.topic_id, TopicFigures(partition.topic))


def cost_row(topic_id: str, topic: TopicFigures, price: StoragePrice, now_ms: int) -> TopicCost:
    """What a topic costs for a month."""
    copies = topic.copies_per_day(now_ms)
    is_known = not topic.segments_of_unknown_size
    puts = round(copies * topic.objects * DAYS_A_MONTH)
    return TopicCost(
        *(topic.name, topic_id, topic.segments, topic.bytes if is_known else None),
        *(price.monthly_cost(topic.bytes) if is_known else None, round(copies, _DIGITS), topic.objects, puts),
        *(price.puts_cost(puts), price.currency),
    )


def _not_known_of_kept(kept: Noncurrent | TieredctlError) -> Iterator[str]:
    if isinstance(kept, TieredctlError):
        yield f"noncurrent versions: {kept.message.rstrip('.')}"
    elif kept.versioning is Versioning.UNKNOWN:
        yield "noncurrent versions: the store does not report whether it keeps any"
    elif kept.versions is None:
        yield "noncurrent versions: the store keeps them, but they may not be listed"
    elif kept.is_cut:
        yield f"noncurrent versions after the first {MOST_ENTRIES} entries of their listing"


def _not_known(price: StoragePrice, gets: int | None, of_unknown_size: int) -> list[str]:
    """What is not in the cost, and why."""

    def reasons() -> Iterator[str]:
        if price.class_prices:
            yield "storage classes: not in the metadata; all bytes count at the store's price"
        if of_unknown_size:
            yield f"storage of {counted(of_unknown_size, 'segment')}: the metadata does not have the size"
        if price.per_thousand_puts is None:
            yield "write requests: the configuration has no perThousandPuts"
        if gets is None:
            yield "read requests: not in the metadata; give --reads-per-day"
        elif price.per_thousand_gets is None:
            yield "read requests: the configuration has no perThousandGets"

    return list(reasons())

"""`estimate cost`: what storing and copying costs for a month, by topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataSnapshot, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import demand_known
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

DAYS_A_MONTH = 30
_DAY_MS = 86_400_000
_DIGITS = 2


@dataclass(slots=True)
class _Topic:
    """A topic's segments in COPY_SEGMENT_FINISHED, and how many copies began in the last month."""

    name: str
    segments: int = 0
    bytes: int = 0
    first_event_ms: int | None = None
    copies: int = 0
    objects: int = 0
    """Of a segment, as the layout promises them."""

    def copies_per_day(self, now_ms: int) -> float:
        """Over the last month, or the topic's life where that is shorter; less than a day counts as one."""
        life_ms = now_ms - self.first_event_ms if self.first_event_ms is not None else 0
        return self.copies * _DAY_MS / min(max(life_ms, _DAY_MS), DAYS_A_MONTH * _DAY_MS)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """A row a topic, and all together."""

    rows: Sequence[Document]
    summary: Document


def cost_estimate(
    stream: EventStream,
    selection: Selection,
    layout: Layout,
    price: StoragePrice,
    now_ms: int,
    *,
    reads_per_day: int | None = None,
) -> CostEstimate:
    """What the selected topics cost for a month as they are, and as they were copied in the last one.

    Bytes are those of the logs as the brokers had them: compression by the layout is not known. A request to write is
    reckoned for each object that the layout promises of a segment; uploads in several parts take more. What reads take
    is not in the metadata: it is as `reads_per_day` states.
    """
    topics = _topics(stream, selection, layout, now_ms)
    rows = [_row(topic_id, topic, price, now_ms) for topic_id, topic in topics]
    gets = None if reads_per_day is None else reads_per_day * DAYS_A_MONTH
    gets_cost = None if gets is None else price.gets_cost(gets)
    parts = [cost for row in rows for cost in (row["storageCost"], row["putsCost"]) if cost is not None]
    known = [*parts, *([] if gets_cost is None else [gets_cost])]
    summary = {
        "bytes": sum(row["bytes"] for row in rows),
        "puts": sum(row["puts"] for row in rows),
        "gets": gets,
        "getsCost": gets_cost,
        "cost": round(sum(known), _DIGITS),
        "currency": price.currency,
        "notKnown": _not_known(price, gets),
    }
    return CostEstimate(rows, summary)


def _topics(stream: EventStream, selection: Selection, layout: Layout, now_ms: int) -> list[tuple[str, _Topic]]:
    store, topics = RemotePartitionMetadataStore(), dict[str, _Topic]()
    for record in stream.records():
        event = record.event
        if not isinstance(event, RemoteLogSegmentMetadataSnapshot) and not selection.has(event.topic_id_partition):
            continue
        store.apply(record)
        if isinstance(event, RemoteLogSegmentMetadata):
            topic = _of(topics, event.topic_id_partition)
            first = topic.first_event_ms
            topic.first_event_ms = min(event.event_timestamp_ms, event.event_timestamp_ms if first is None else first)
            topic.objects = len(layout.promised_objects(event))
            topic.copies += event.event_timestamp_ms > now_ms - DAYS_A_MONTH * _DAY_MS
    stream.findings += stream.not_explained(store.findings)
    demand_known(stream, store, selection)
    for partition, known in store.segments():
        if known.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            topic = _of(topics, partition)
            topic.segments += 1
            topic.bytes += known.metadata.segment_size_in_bytes
    return sorted(topics.items(), key=lambda one: one[1].name)


def _of(topics: dict[str, _Topic], partition: TopicIdPartition) -> _Topic:
    return topics.setdefault(partition.topic_id, _Topic(partition.topic))


def _row(topic_id: str, topic: _Topic, price: StoragePrice, now_ms: int) -> Document:
    copies = topic.copies_per_day(now_ms)
    puts = round(copies * topic.objects * DAYS_A_MONTH)
    return {
        "topic": topic.name,
        "topicId": topic_id,
        "segments": topic.segments,
        "bytes": topic.bytes,
        "storageCost": price.monthly_cost(topic.bytes),
        "copiesPerDay": round(copies, _DIGITS),
        "objectsASegment": topic.objects,
        "puts": puts,
        "putsCost": price.puts_cost(puts),
        "currency": price.currency,
    }


def _not_known(price: StoragePrice, gets: int | None) -> list[str]:
    """What is not in the cost, and why."""

    def reasons() -> Iterator[str]:
        if price.class_prices:
            yield "storage classes: the metadata does not tell them; all bytes are at the store's price"
        if price.per_thousand_puts is None:
            yield "requests to write: the configuration has no perThousandPuts"
        if gets is None:
            yield "requests to read: the metadata does not tell them; state --reads-per-day"
        elif price.per_thousand_gets is None:
            yield "requests to read: the configuration has no perThousandGets"

    return list(reasons())

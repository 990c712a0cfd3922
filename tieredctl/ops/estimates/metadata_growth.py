"""`estimate metadata`: brokers' memory for remote log metadata, the growth of its topic, the time to replay it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, Quantity, ResultRow
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.stats import ASSUMED_EVENTS_PER_SECOND, statistics
from tieredctl.ports.cluster import Cluster
from tieredctl.rlmm.partitioner import metadata_partition

KIP_405_BYTES_A_SEGMENT = 100
"""KIP-405's figure ("RLMM segment overhead"): 2.6 million segments, 260 MB."""
HEAP_BYTES_A_SEGMENT, HEAP_BYTES_A_LEADER_EPOCH = 500, 100
"""Heap bytes of a segment in the cache, and of each of its leader epochs, as measured. With 40,000 finished segments of
one epoch Kafka 3.9.1 and 4.3.1 grew by 593 and 626 bytes for each, with three epochs by 824 and 805 (Java 17, with
compressed references)."""
_EVENTS_A_SEGMENT = 2
_DAY_MS = 86_400_000
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The number of segments in a broker's cache, or in a whole cluster's metadata, and of their leader epochs."""

    segments: int = 0
    leader_epochs: int = 0

    @property
    def bytes_by_kip_405(self) -> int:
        """Heap bytes by the KIP."""
        return self.segments * KIP_405_BYTES_A_SEGMENT

    @property
    def bytes_measured(self) -> int:
        """Heap bytes as measured."""
        return self.segments * HEAP_BYTES_A_SEGMENT + self.leader_epochs * HEAP_BYTES_A_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class BrokerMemory(ResultRow):
    """A broker's memory, or that of one that has all partitions, whose id is None; and the time of its replay."""

    broker_id: Annotated[int | None, Column("BROKER")]
    partitions: int | None
    segments: int
    bytes_by_kip_405: Annotated[int, Column("MEMORY-BY-KIP-405", Quantity.SIZE)]
    bytes_measured: Annotated[int, Column("MEMORY-MEASURED", Quantity.SIZE)]
    replay_seconds: float


@dataclass(frozen=True, slots=True)
class MetadataEstimate:
    """One row per broker, or one for all where no broker is known; and the total."""

    rows: Sequence[BrokerMemory]
    summary: Document


def stated_metadata(segments: int) -> MetadataEstimate:
    """The metadata of a number of segments, each with one leader epoch and the start and end of its copy."""
    events = segments * _EVENTS_A_SEGMENT
    row = _row(None, None, CacheSize(segments, segments), events)
    return MetadataEstimate([row], _constants() | {"events": events})


def read_metadata(stream: EventStream, cluster: Cluster | None) -> MetadataEstimate:
    """The metadata that a source holds; by broker where there is a cluster to ask who has which partition. Raises
    TieredctlError as these do."""
    counted = statistics(stream, is_described=True)
    events = {document["metadataPartition"]: document["events"] for document in counted.partitions}
    by_partition: dict[TopicIdPartition, CacheSize] = defaultdict(CacheSize)
    for metadata in counted.stores:
        for partition, segments, leader_epochs in metadata.sizes_of_partitions():
            by_partition[partition] = _size([by_partition[partition], CacheSize(segments, leader_epochs)])
    total = counted.total
    if cluster is None:
        rows = [_row(None, len(by_partition), _size(by_partition.values()), total["events"])]
    else:
        rows = _by_broker(_partitions_of_brokers(cluster, by_partition), by_partition, events)
    growth = _growth(total["events"], total["bytes"], total["firstEventTimestampMs"], total["lastEventTimestampMs"])
    whole = {name: total[name] for name in ("events", "bytes", "deadEvents", "deadRatio", "replaySeconds")}
    size = _size(by_partition.values())
    sizes = {"segments": size.segments, "bytesByKip405": size.bytes_by_kip_405, "bytesMeasured": size.bytes_measured}
    return MetadataEstimate(rows, sizes | whole | growth | _constants())


def _partitions_of_brokers(
    cluster: Cluster, partitions: Iterable[TopicIdPartition]
) -> Mapping[int, list[TopicIdPartition]]:
    """The partitions that each broker leads or follows, of topics that still exist."""
    of_brokers: dict[int, list[TopicIdPartition]] = defaultdict(list)
    by_topic: dict[str, list[TopicIdPartition]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append(partition)
    for name, own in by_topic.items():
        try:
            topic = cluster.topic(name)
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                raise
            continue
        replicas = {(topic.topic_id, one.partition): one.replicas for one in topic.partitions}
        for partition in own:
            for broker in replicas.get((partition.topic_id, partition.partition), ()):
                of_brokers[broker].append(partition)
    return of_brokers


def _by_broker(
    of_brokers: Mapping[int, list[TopicIdPartition]],
    sizes: Mapping[TopicIdPartition, CacheSize],
    events: Mapping[int, int],
) -> list[BrokerMemory]:
    rows = []
    for broker, partitions in sorted(of_brokers.items()):
        read = {metadata_partition(one.topic_id, one.partition, len(events)) for one in partitions}
        size = _size(sizes[one] for one in partitions)
        rows.append(_row(broker, len(partitions), size, sum(events[number] for number in read)))
    return rows


def _row(broker: int | None, partitions: int | None, size: CacheSize, events: int) -> BrokerMemory:
    """`events` are those of the metadata partitions that are read for these segments."""
    seconds = round(events / ASSUMED_EVENTS_PER_SECOND, _DIGITS)
    return BrokerMemory(broker, partitions, size.segments, size.bytes_by_kip_405, size.bytes_measured, seconds)


def _size(parts: Iterable[CacheSize]) -> CacheSize:
    every = list(parts)
    return CacheSize(sum(one.segments for one in every), sum(one.leader_epochs for one in every))


def _growth(events: int, size: int, first_ms: int | None, last_ms: int | None) -> Document:
    """Events and bytes per day, on average from the first to the last event; null where there is no time between
    them."""
    span_ms = 0 if first_ms is None or last_ms is None else last_ms - first_ms
    return {
        "spanMs": span_ms,
        "eventsPerDay": round(events * _DAY_MS / span_ms) if span_ms else None,
        "bytesPerDay": round(size * _DAY_MS / span_ms) if span_ms else None,
    }


def _constants() -> Document:
    return {
        "kip405BytesASegment": KIP_405_BYTES_A_SEGMENT,
        "heapBytesASegment": HEAP_BYTES_A_SEGMENT,
        "heapBytesALeaderEpoch": HEAP_BYTES_A_LEADER_EPOCH,
        "assumedEventsPerSecond": ASSUMED_EVENTS_PER_SECOND,
    }

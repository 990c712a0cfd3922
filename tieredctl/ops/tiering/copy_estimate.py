"""What tiering a topic costs and saves: bytes to copy by broker, time at the quota, requests, disk space freed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tieredctl.model.prices import StoragePrice
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.topic_settings import SEGMENT_BYTES, TopicSettings
from tieredctl.ops.documents import Document
from tieredctl.ops.tiering.partition_bytes import PartitionBytes
from tieredctl.ports.cluster import Cluster, ListedOffset, TopicDescription

REQUESTS_A_SEGMENT = 3
"""At least: the log, the indexes in one object, a manifest. Large logs are uploaded in parts, and there may be more
objects."""


@dataclass(frozen=True, slots=True)
class BrokerEstimate:
    """One broker's share. Bytes are estimates, None where unknown; `seconds` also where no quota is set."""

    broker: int
    bytes_to_copy: int | None
    copy_bytes_per_second: int | None
    freed_bytes: int | None
    is_quota_known: bool = True

    @property
    def seconds(self) -> int | None:
        if self.copy_bytes_per_second is None or self.bytes_to_copy is None:
            return None
        return -(-self.bytes_to_copy // self.copy_bytes_per_second)

    def document(self) -> Document:
        return {
            "brokerId": self.broker,
            "bytesToCopy": self.bytes_to_copy,
            "copyMaxBytesPerSecond": self.copy_bytes_per_second,
            "copyQuotaKnown": self.is_quota_known,
            "seconds": self.seconds,
            "freedBytes": self.freed_bytes,
        }


@dataclass(frozen=True, slots=True)
class CopyEstimate:
    """All brokers together; `segments` are those to copy. None stands for unknown."""

    brokers: Sequence[BrokerEstimate]
    segments: int | None
    bytes_to_copy: int | None

    @property
    def freed_bytes(self) -> int | None:
        return known_sum(one.freed_bytes for one in self.brokers)

    @property
    def requests(self) -> int | None:
        """The least number of write requests."""
        return None if self.segments is None else self.segments * REQUESTS_A_SEGMENT

    @property
    def seconds(self) -> int | None:
        """Until the last broker is done; None where one has something to copy and no quota, or this is unknown."""
        busy = [one.seconds for one in self.brokers if one.bytes_to_copy != 0]
        estimated = [seconds for seconds in busy if seconds is not None]
        return max(estimated, default=0) if len(estimated) == len(busy) else None

    def document(self, price: StoragePrice | None) -> Document:
        """The document of every output format; with a price, also what the requests and a month of storage cost."""
        document: Document = {
            "bytesToCopy": self.bytes_to_copy,
            "seconds": self.seconds,
            "segments": self.segments,
            "requestsAtLeast": self.requests,
            "freedBytes": self.freed_bytes,
            "brokers": [one.document() for one in self.brokers],
        }
        if price is None:
            return document
        return document | {
            "requestsCost": None if self.requests is None else price.puts_cost(self.requests),
            "storageCostPerMonth": None if self.bytes_to_copy is None else price.monthly_cost(self.bytes_to_copy),
            "currency": price.currency,
        }


def copy_estimate(
    partitions: Sequence[PartitionBytes],
    settings: TopicSettings,
    brokers: Mapping[int, BrokerSettings],
    first_kept: Mapping[int, ListedOffset] | None,
) -> CopyEstimate:
    """`settings` are those that the topic is to get; `first_kept` is the result of `first_kept_offsets`."""
    places = sorted({*brokers, *(broker for one in partitions for broker in one.partition.replicas)})
    segment_bytes = max(1, settings.number(SEGMENT_BYTES))
    return CopyEstimate(
        [
            BrokerEstimate(
                broker,
                known_sum(one.bytes_to_copy for one in partitions if one.partition.leader == broker),
                brokers[broker].copy_quota if broker in brokers else None,
                known_sum(_freed(one, broker, settings, first_kept) for one in partitions),
                broker in brokers,
            )
            for broker in places
        ],
        known_sum(_segments(one.bytes_to_copy, segment_bytes) for one in partitions),
        known_sum(one.bytes_to_copy for one in partitions),
    )


def _segments(bytes_to_copy: int | None, segment_bytes: int) -> int | None:
    return None if bytes_to_copy is None else -(-bytes_to_copy // segment_bytes)


def first_kept_offsets(
    cluster: Cluster, topic: TopicDescription, settings: TopicSettings, now_ms: int
) -> Mapping[int, ListedOffset] | None:
    """The first offset of each partition that local retention by time keeps; None where it keeps all."""
    local_ms = settings.local_retention_ms
    return None if local_ms < 0 else cluster.list_offsets(topic, max(0, now_ms - local_ms))


def _freed(
    one: PartitionBytes, broker: int, settings: TopicSettings, first_kept: Mapping[int, ListedOffset] | None
) -> int | None:
    """What local retention deletes from a replica's disk once it is tiered; the limit that deletes more decides."""
    size = one.replica_bytes.get(broker)
    if size is None:
        return None if broker in one.partition.replicas else 0
    kept_by_time = kept_by_size = size
    if first_kept is not None and (answer := first_kept.get(one.partition.partition)) and answer.error is None:
        # No offset: all records are older.
        kept_by_time = 0 if answer.offset is None else one.share_from(answer.offset, size)
    if settings.local_retention_bytes >= 0:
        kept_by_size = min(size, settings.local_retention_bytes)
    return size - min(kept_by_time, kept_by_size)

"""`__remote_log_metadata` read from a live cluster: a `MetadataSource` over confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.broker_client import BrokerClient
from tieredctl.kafka.broker_connection import LONGEST_WAIT_SECONDS, REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.source import METADATA_TOPIC, MetadataRecord, OffsetRange, RecordChunk, chunk_of, truncated
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_CHUNK_RECORDS = 10_000


class LiveTopic:
    """The topic up to its end offsets (high watermarks) of the moment this is made. Joins no group, commits nothing."""

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None = None,
        *,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Raises TieredctlError where no broker answers in time or one refuses, and where there is no such topic."""
        self._client = BrokerClient(bootstrap_server, command_config, request_timeout_seconds)
        self._cluster_id: str | None = None
        self._ranges: dict[int, OffsetRange] = {}
        self.advance()

    @property
    def cluster_id(self) -> str | None:
        return self._cluster_id

    @property
    def metadata_topic_id(self) -> str | None:
        return None

    @property
    def partition_count(self) -> int | None:
        return max(self._ranges, default=-1) + 1

    def describe(self) -> dict[str, object]:
        document: dict[str, object] = {
            "kind": "topic",
            "bootstrapServer": self._client.bootstrap_server,
            "clusterId": self._cluster_id,
            "metadataPartitions": len(self._ranges),
            "topicPartitions": self.partition_count,
            "endOffsets": {str(partition): offsets.end for partition, offsets in self._ranges.items()},
        }
        if self._client.ignored_properties:
            document["ignoredProperties"] = self._client.ignored_properties
        return document

    def metadata_partitions(self) -> list[int]:
        return sorted(self._ranges)

    def findings(self) -> list[Finding]:
        return [truncated(partition, offsets.start) for partition, offsets in self._ranges.items() if offsets.start]

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return self._ranges.get(metadata_partition, OffsetRange(0, 0))

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        start, end = self.offset_range(metadata_partition)
        offsets = OffsetRange(max(start, from_offset), end)
        if offsets.start < offsets.end:
            yield from _PartitionReader(self._client, metadata_partition, offsets).chunks()

    def advance(self) -> bool:
        cluster_id, partitions = _cluster_id_and_partitions(self._client)
        ranges = {partition: _offset_range(self._client, partition) for partition in partitions}
        before = self._cluster_id, self._ranges
        self._cluster_id, self._ranges = cluster_id, ranges
        return before != (cluster_id, ranges)

    def close(self) -> None:
        self._client.close()


def _cluster_id_and_partitions(client: BrokerClient) -> tuple[str | None, list[int]]:
    from confluent_kafka import KafkaError

    deadline = time.monotonic() + client.request_timeout_seconds
    while True:
        cluster = client.answer(lambda consumer, wait: consumer.list_topics(METADATA_TOPIC, wait))
        topic = cluster.topics[METADATA_TOPIC]
        if topic.error is None:
            break
        client.demand_access(topic.error)
        if topic.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise TieredctlError(
                ErrorCode.NO_METADATA_TOPIC, f"{client.bootstrap_server} has no topic {METADATA_TOPIC}."
            )
        if not topic.error.retriable() or time.monotonic() > deadline:
            raise client.unreachable(topic.error.str())
        client.consumer.poll(LONGEST_WAIT_SECONDS)
    return cluster.cluster_id, sorted(topic.partitions)


def _offset_range(client: BrokerClient, metadata_partition: int) -> OffsetRange:
    """Log start and high watermark of this moment."""
    from confluent_kafka import TopicPartition

    where = TopicPartition(METADATA_TOPIC, metadata_partition)
    return OffsetRange(*client.answer(lambda consumer, wait: consumer.get_watermark_offsets(where, timeout=wait)))


class _Fetched(NamedTuple):
    """What one call brought: records, those offsets of them that do not rise, the offset up to which all is read then,
    why a batch there is not sound."""

    records: list[MetadataRecord]
    out_of_order: list[int]
    reached: int | None
    damage: str | None
    unkeyed: int
    """How many of the records have no key."""


class _PartitionReader:
    """Reads a partition from a start to an end that lies above it.

    A batch that is damaged makes librdkafka try it for ever, or take a wrong offset from it: reading begins anew one
    offset further on, until a sound batch is there.
    """

    def __init__(self, client: BrokerClient, metadata_partition: int, offsets: OffsetRange) -> None:
        self._client = client
        self._metadata_partition = metadata_partition
        self._position, self._end = offsets
        self._last_offset = offsets.start - 1
        self._deadline = 0.0
        self._damage: tuple[int, str] | None = None
        """The first offset of a damaged stretch that reading is still in, and what is wrong with it."""

    def chunks(self) -> Iterator[RecordChunk]:
        self._begin_at(self._position)
        try:
            while self._position < self._end:
                wanted = min(_CHUNK_RECORDS, self._end - self._position)
                fetched = self._fetched(self._client.consumer.consume(wanted, LONGEST_WAIT_SECONDS))
                findings = [*self._ended_damage(fetched), *self._disorder(fetched)]
                self._advance(fetched)
                if fetched.records or findings:
                    chunk = chunk_of(fetched.records, findings)
                    chunk.unkeyed = fetched.unkeyed
                    yield chunk
            if self._damage is not None:
                yield chunk_of((), [self._damaged(*self._damage, self._end - 1)])
        finally:
            self._client.consumer.unassign()

    def _begin_at(self, position: int) -> None:
        from confluent_kafka import TopicPartition

        self._position = position
        self._client.consumer.assign([TopicPartition(METADATA_TOPIC, self._metadata_partition, position)])
        self._renew_deadline()

    def _renew_deadline(self) -> None:
        self._deadline = time.monotonic() + self._client.request_timeout_seconds

    def _advance(self, fetched: _Fetched) -> None:
        if fetched.reached is not None:
            self._position = fetched.reached
            self._renew_deadline()
        if fetched.damage is not None:
            self._damage = self._damage or (self._position, fetched.damage)
            self._begin_at(self._position + 1)
        elif fetched.reached is None and time.monotonic() > self._deadline:
            where = f"{METADATA_TOPIC}-{self._metadata_partition}"
            raise self._client.unreachable(f"{where} gave nothing from offset {self._position} on")

    def _fetched(self, messages: list[Message]) -> _Fetched:
        """Control records, and those that compaction removed, move the end of a partition without being messages."""
        records: list[MetadataRecord] = []
        out_of_order: list[int] = []
        reached: int | None = None
        unkeyed = 0
        for message in messages:
            offset, error = message.offset(), message.error()
            if error is not None and _is_damage(error):
                return _Fetched(records, out_of_order, reached, error.str(), unkeyed)
            if error is not None and not _is_end(error):
                self._demand_passing(error)
            elif error is not None or offset is None or self._is_later(offset):
                reached = offset
            else:
                key, value = message.key(), message.value()
                records.append(MetadataRecord(offset, message.timestamp()[1], value, key if value is None else None))
                unkeyed += key is None
                if self._last_offset < offset < self._end:
                    self._last_offset, reached = offset, offset + 1
                else:
                    out_of_order.append(offset)
        return _Fetched(records, out_of_order, reached, None, unkeyed)

    def _is_later(self, offset: int) -> bool:
        """Whether an offset lies behind what is to be read, and is one that the partition has by now."""
        from confluent_kafka import TopicPartition

        if offset < self._end:
            return False
        where = TopicPartition(METADATA_TOPIC, self._metadata_partition)
        return offset < self._client.consumer.get_watermark_offsets(where, cached=True)[1]

    def _demand_passing(self, error: KafkaError) -> None:
        """Raises TieredctlError for an error after which reading cannot go on."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise TieredctlError(
                ErrorCode.UNREADABLE,
                f"{METADATA_TOPIC}-{self._metadata_partition} lost offset {self._position} while it was read.",
                hint="Its retention may be at work, which loses history; run it again.",
            )
        # No group is used, so that it does not matter who may.
        if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            self._client.demand_access(error)
            self._client.note(error)

    def _ended_damage(self, fetched: _Fetched) -> Iterator[Finding]:
        if self._damage is not None and fetched.reached is not None:
            behind = fetched.records[0].offset if fetched.records else fetched.reached
            yield self._damaged(*self._damage, behind - 1)
            self._damage = None

    def _disorder(self, fetched: _Fetched) -> Iterator[Finding]:
        if fetched.out_of_order:
            odd = [fetched.out_of_order[0], fetched.out_of_order[-1]]
            yield Finding(
                FindingCode.OFFSETS_OUT_OF_ORDER,
                f"{METADATA_TOPIC}-{self._metadata_partition}",
                f"offsets {odd[0]} to {odd[1]} do not rise: a batch's base offset was altered",
                {"metadataPartition": self._metadata_partition, "offsets": odd},
            )

    def _damaged(self, first: int, reason: str, last: int) -> Finding:
        return Finding(
            FindingCode.BATCH_CORRUPT,
            f"{METADATA_TOPIC}-{self._metadata_partition}@{first}",
            f"{reason}; the log was read on behind it",
            {"metadataPartition": self._metadata_partition, "offsets": [first, last]},
        )


def _is_damage(error: KafkaError) -> bool:
    from confluent_kafka import KafkaError

    return error.code() in (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION)


def _is_end(error: KafkaError) -> bool:
    from confluent_kafka import KafkaError

    return error.code() == KafkaError._PARTITION_EOF

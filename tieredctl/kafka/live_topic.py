"""`__remote_log_metadata` read from a live cluster: a `MetadataSource` over confluent-kafka."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tieredctl.errors import TieredctlError
from tieredctl.kafka.client_properties import read_client_properties, without_secrets
from tieredctl.kafka.source import METADATA_TOPIC, MetadataRecord, OffsetRange, RecordChunk, chunk_of, truncated
from tieredctl.model.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer, KafkaError, Message

REQUEST_TIMEOUT_SECONDS = 15.0
"""How long a broker may stay silent before the read is given up."""

_CHUNK_RECORDS = 10_000
# A wait inside librdkafka hides Ctrl-C from Python, so none is longer.
_WAIT_SECONDS = 0.25
_UNKNOWN_PROPERTY = re.compile(r'No such configuration property: "([^"]+)"')
_DEFAULTS = {"group.id": "tieredctl", "client.id": "tieredctl", "log_level": "0"}
# What a read without traces needs, whatever the file of properties says.
_DEMANDED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "allow.auto.create.topics": "false",
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "check.crcs": "true",
    # A partition that is read to its end would else hold up the next one for half a second.
    "fetch.wait.max.ms": "10",
}
_Answer = TypeVar("_Answer")


class LiveTopic:
    """The topic up to its end offsets (high watermarks) of the moment this is made.

    Joins no consumer group and commits nothing. librdkafka asks for a group's coordinator all the same, for which a
    cluster that never had a consumer creates __consumer_offsets.
    """

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None = None,
        *,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Raises TieredctlError where no broker answers in time or one refuses, and where there is no such topic."""
        self._client = _Client(bootstrap_server, command_config, request_timeout_seconds)
        cluster = self._client.answer(lambda consumer, wait: consumer.list_topics(METADATA_TOPIC, wait))
        self._cluster_id: str | None = cluster.cluster_id
        partitions = self._client.partitions_of(cluster.topics[METADATA_TOPIC])
        self._ranges = {partition: self._client.offset_range(partition) for partition in partitions}

    def describe(self) -> dict[str, object]:
        document: dict[str, object] = {
            "kind": "topic",
            "bootstrapServer": self._client.bootstrap_server,
            "clusterId": self._cluster_id,
            "metadataPartitions": len(self._ranges),
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

    def chunks(self, metadata_partition: int) -> Iterator[RecordChunk]:
        offsets = self.offset_range(metadata_partition)
        if offsets.start < offsets.end:
            yield from self._client.chunks(metadata_partition, offsets)


class _Client:
    """A consumer, and what it last complained of: librdkafka gives reasons to a callback, not to who waits."""

    def __init__(self, bootstrap_server: str, command_config: Path | None, timeout_seconds: float) -> None:
        self.bootstrap_server = bootstrap_server
        self.ignored_properties: list[str] = []
        self._timeout_seconds = timeout_seconds
        self._properties = _DEFAULTS | read_client_properties(command_config) | _DEMANDED
        self._properties["bootstrap.servers"] = bootstrap_server
        self._complaint: str | None = None
        self._refusal: str | None = None
        self._consumer = self._made()

    def _made(self) -> Consumer:
        """The consumer, without those properties that librdkafka does not know."""
        try:
            from confluent_kafka import Consumer, KafkaException
        except ImportError:
            hint = "Install it with: pip install 'tieredctl[kafka]'"
            raise TieredctlError("missing-extra", "Reading a live cluster needs confluent-kafka.", hint=hint) from None
        while True:
            try:
                return Consumer({**self._properties, "error_cb": self._note})
            except KafkaException as error:
                reason = error.args[0].str()
                unknown = _UNKNOWN_PROPERTY.search(reason)
                if unknown is None or unknown[1] not in self._properties:
                    hint = "Mend the file that --command-config names."
                    message = f"No client can be made with these properties: {self._public(reason)}."
                    raise TieredctlError("usage", message, hint=hint) from None
                del self._properties[unknown[1]]
                self.ignored_properties.append(unknown[1])

    def answer(self, ask: Callable[[Consumer, float], _Answer]) -> _Answer:
        """What the cluster answers to a request that takes (the consumer, seconds to wait). Raises TieredctlError."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._timeout_seconds
        while True:
            try:
                return ask(self._consumer, _WAIT_SECONDS)
            except KafkaException as error:
                self._consumer.poll(_WAIT_SECONDS / 5)  # hands out the complaints that stand behind the error
                self._demand_access(error.args[0])
                if time.monotonic() > deadline:
                    raise self._unreachable(error.args[0].str()) from None

    def partitions_of(self, topic: Any) -> list[int]:
        """The partitions of a topic's metadata."""
        from confluent_kafka import KafkaError

        if topic.error is not None:
            self._demand_access(topic.error)
            if topic.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                raise TieredctlError("no-metadata-topic", f"{self.bootstrap_server} has no topic {METADATA_TOPIC}.")
            raise self._unreachable(topic.error.str())
        return sorted(topic.partitions)

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        """Log start and high watermark of this moment."""
        from confluent_kafka import TopicPartition

        where = TopicPartition(METADATA_TOPIC, metadata_partition)
        return OffsetRange(*self.answer(lambda consumer, wait: consumer.get_watermark_offsets(where, timeout=wait)))

    def chunks(self, metadata_partition: int, offsets: OffsetRange) -> Iterator[RecordChunk]:
        """The records of a partition that is not empty."""
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(METADATA_TOPIC, metadata_partition, offsets.start)])
        try:
            position, deadline = offsets.start, time.monotonic() + self._timeout_seconds
            while position < offsets.end:
                wanted = min(_CHUNK_RECORDS, offsets.end - position)
                chunk, reached = self._chunk(self._consumer.consume(wanted, _WAIT_SECONDS), offsets.end)
                if len(chunk) or chunk.findings:
                    yield chunk
                if reached is not None:
                    position, deadline = reached, time.monotonic() + self._timeout_seconds
                elif time.monotonic() > deadline:
                    raise self._unreachable(f"{METADATA_TOPIC}-{metadata_partition} gave nothing from {position} on")
        finally:
            self._consumer.unassign()

    def _chunk(self, messages: list[Message], end: int) -> tuple[RecordChunk, int | None]:
        """The records among messages that lie below an offset, and the offset up to which all is read then.

        Control records, and those that compaction removed, move the end of the partition without being messages.
        """
        records: list[MetadataRecord] = []
        findings: list[Finding] = []
        reached: int | None = None
        for message in messages:
            offset = message.offset()
            if (error := message.error()) is not None and not self._is_position(error, message, findings):
                continue
            assert offset is not None
            if error is None and offset < end:
                records.append(MetadataRecord(offset, message.timestamp()[1], message.value()))
                offset += 1
            reached = offset if reached is None else max(reached, offset)
        return chunk_of(records, findings), reached

    def _is_position(self, error: KafkaError, message: Message, findings: list[Finding]) -> bool:
        """Whether an error says how far a partition was read. Raises TieredctlError where reading cannot go on."""
        from confluent_kafka import KafkaError

        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            return True
        if code == KafkaError._BAD_MSG:
            findings.append(_damaged(message, error))
            return False
        if code == KafkaError._AUTO_OFFSET_RESET:
            raise TieredctlError(
                "unreadable",
                f"{METADATA_TOPIC}-{message.partition()} lost offset {message.offset()} while it was read.",
                hint="Its retention may be at work, which loses history; run it again.",
            )
        if code != KafkaError.GROUP_AUTHORIZATION_FAILED:  # no group is used, so that its lock does not matter
            self._demand_access(error)
            self._complaint = error.str()
        return False

    def _note(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._refusal = error.str()
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaint = error.str()

    def _demand_access(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            hint = f"The user needs the operations Describe and Read on topic {METADATA_TOPIC}."
            raise self._refused(error.str(), hint)
        if error.code() == KafkaError._AUTHENTICATION or self._refusal:
            raise self._refused(self._refusal or error.str())

    def _refused(self, reason: str, hint: str | None = None) -> TieredctlError:
        message = f"{self.bootstrap_server} refused: {self._public(reason)}{self._but()}"
        return TieredctlError("broker-refused", message, hint=hint)

    def _unreachable(self, reason: str) -> TieredctlError:
        said = self._public(self._complaint or reason)
        return TieredctlError(
            "broker-unreachable",
            f"{self.bootstrap_server} did not answer within the request timeout of {self._timeout_seconds:g} s: "
            f"{said}{self._but()}",
        )

    def _public(self, reason: str) -> str:
        return without_secrets(reason, self._properties).rstrip(".")

    def _but(self) -> str:
        ignored = ", ".join(self.ignored_properties)
        return f" (properties that mean nothing to librdkafka were ignored: {ignored})." if ignored else "."


def _damaged(message: Message, error: KafkaError) -> Finding:
    partition, offset = message.partition(), message.offset()
    return Finding(
        "batch-corrupt",
        f"{METADATA_TOPIC}-{partition}@{offset}",
        f"{error.str()}; the log was read on behind it",
        {"metadataPartition": partition, "offsets": [offset, offset]},
    )

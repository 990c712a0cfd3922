"""Writes events to `__remote_log_metadata` as brokers do: idempotent, acks=all, to the given partition."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.metadata_records import encode_event
from tieredctl.installation import missing_extra
from tieredctl.kafka.broker_connection import LONGEST_WAIT_SECONDS, REQUEST_TIMEOUT_SECONDS, BrokerConnection
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds
from tieredctl.kafka.connection_settings import librdkafka_settings
from tieredctl.kafka.kafka_python_producer import KafkaPythonProducer
from tieredctl.kafka.tracing import traced_request
from tieredctl.model.counted import counted
from tieredctl.model.events import MetadataEvent
from tieredctl.ports.metadata_source import METADATA_TOPIC

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

# No event may be lost, duplicated or reordered, whatever the properties file says.
_DEMANDED = {
    "enable.idempotence": "true",
    "acks": "all",
    "max.in.flight": "5",
    "allow.auto.create.topics": "false",
    "compression.type": "none",
}
_HINT = f"The user needs the operations Describe and Write on topic {METADATA_TOPIC}."
_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def metadata_producer(bootstrap_server: str, command_config: Path | None) -> MetadataProducer | KafkaPythonProducer:
    """A producer for the metadata topic: librdkafka's wherever its wheel can sign in. Does not connect yet. Raises
    TieredctlError where no client can be made with the properties."""
    properties = read_client_properties(command_config)
    if librdkafka_settings(bootstrap_server, properties) is None:
        seconds = timeout_seconds(properties, REQUEST_TIMEOUT_SECONDS)
        return KafkaPythonProducer(bootstrap_server, properties, seconds)
    return MetadataProducer(bootstrap_server, command_config)


class MetadataProducer:
    """A producer for the metadata topic. To be closed."""

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None = None,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Does not connect yet. Raises TieredctlError where no client can be made with the properties."""
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise missing_extra("Writing events needs confluent-kafka.", "kafka") from None
        self._connection = BrokerConnection(
            bootstrap_server,
            command_config,
            request_timeout_seconds,
            defaults={},
            demanded=_DEMANDED,
            operations="Describe and Write",
        )
        self._connection.properties["message.timeout.ms"] = str(int(self._connection.request_timeout_seconds * 1000))
        # A transaction would hide the events from no reader, and needs further rights.
        self._connection.properties.pop("transactional.id", None)
        self._connection.judge_properties(partial(_quiet, Producer))
        self._is_open = False

    @cached_property
    def _producer(self) -> Producer:
        from confluent_kafka import Producer

        made = self._connection.made(partial(_quiet, Producer))
        self._is_open = True
        return made

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        """Writes events in this order, without a key. Returns once all in-sync replicas have all of them.

        Raises TieredctlError: `broker-refused` where the user is refused, or may not write, `broker-unreachable` where
        not every event was confirmed in time. Unconfirmed events may still have been written."""
        asked = f"write {counted(len(events), 'event')} to {METADATA_TOPIC}-{metadata_partition}"
        with traced_request(self._connection.bootstrap_server, asked):
            self._publish(metadata_partition, events)

    def _publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        from confluent_kafka import KafkaException

        failures: list[KafkaError] = []
        unconfirmed = set(range(len(events)))
        try:
            for number, event in enumerate(events):
                self._enqueue(metadata_partition, encode_event(event), partial(_confirm, number, unconfirmed, failures))
            # librdkafka gives up on a message itself, somewhat after its timeout.
            deadline = time.monotonic() + 2 * self._connection.request_timeout_seconds
            while unconfirmed and not failures and time.monotonic() < deadline:
                self._producer.poll(LONGEST_WAIT_SECONDS)
        except KafkaException as error:
            failures.append(error.args[0])
        if unconfirmed:
            raise self._failed(failures)

    def close(self) -> None:
        """Ends the connections. Unconfirmed events are not retried."""
        from confluent_kafka import KafkaException

        if not self._is_open:
            return
        # Every call after a fatal error raises it again; it was reported the first time.
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(LONGEST_WAIT_SECONDS)

    def _enqueue(self, metadata_partition: int, value: bytes, on_delivery: partial[None]) -> None:
        while True:
            try:
                self._producer.produce(METADATA_TOPIC, value, partition=metadata_partition, on_delivery=on_delivery)
            except BufferError:
                self._producer.poll(LONGEST_WAIT_SECONDS)
            else:
                self._producer.poll(0)
                return

    def _failed(self, failures: Sequence[KafkaError]) -> TieredctlError:
        from confluent_kafka import KafkaError, KafkaException

        error = next(iter(failures), None)
        try:
            # After a fatal error every message fails without a reason, so the reason is raised here.
            self._producer.poll(LONGEST_WAIT_SECONDS)
        except KafkaException as fatal:
            error = fatal.args[0]
        if error is None:
            return self._connection.unreachable("events were not confirmed")
        # A user without Write on any topic gets no producer id, which brokers report as a cluster authorization error.
        if error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            message = f"{self._connection.bootstrap_server} refused: {error.str()}."
            return TieredctlError(ErrorCode.BROKER_REFUSED, message, hint=_HINT)
        try:
            self._connection.demand_access(error)
        except TieredctlError as refusal:
            return refusal
        return self._connection.unreachable(error.str())


def _quiet(kind: Callable[..., Producer], properties: dict[str, Any]) -> Producer:
    """A producer whose fatal errors are raised, but not also written to stderr."""
    return kind(properties, logger=_SILENT)


def _confirm(
    number: int, unconfirmed: set[int], failures: list[KafkaError], error: KafkaError | None, _message: Message
) -> None:
    if error is None:
        unconfirmed.discard(number)
    else:
        failures.append(error)

"""Writes events to `__remote_log_metadata` where librdkafka cannot sign in: with kafka-python's idempotent producer.

Each event is confirmed before the next is sent, so that none is ever written after one that was not: kafka-python may
send what follows an expired one. That takes a round trip for each event.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.metadata_records import encode_event
from tieredctl.kafka.broker_connection import LONGEST_WAIT_SECONDS
from tieredctl.kafka.client_properties import without_secrets
from tieredctl.kafka.connection_settings import kafka_python_settings
from tieredctl.kafka.kafka_python_client import bootstrapped
from tieredctl.kafka.properties import Properties
from tieredctl.kafka.server_connection import demand_connection
from tieredctl.kafka.tracing import traced_request
from tieredctl.model.counted import counted
from tieredctl.model.events import MetadataEvent
from tieredctl.ports.metadata_source import METADATA_TOPIC


class KafkaPythonProducer:
    """A producer for the metadata topic: idempotent, acks=all, uncompressed. To be closed."""

    def __init__(self, bootstrap_server: str, properties: Properties, timeout_seconds: float) -> None:
        """Does not connect yet. Raises TieredctlError for properties with which nobody can sign in."""
        self._server, self._properties, self._seconds = bootstrap_server, properties, timeout_seconds
        self._settings = kafka_python_settings(bootstrap_server, properties)
        self._is_open = False

    @cached_property
    def _producer(self) -> Any:
        from kafka import KafkaProducer

        demand_connection(self._server, self._properties, self._seconds)
        milliseconds = int(self._seconds * 1000)
        made = bootstrapped(
            lambda most: KafkaProducer(
                **self._settings,
                enable_idempotence=True,
                acks="all",
                compression_type=None,
                allow_auto_create_topics=False,
                metrics_enabled=False,
                max_block_ms=milliseconds,
                bootstrap_timeout_ms=most,
                request_timeout_ms=milliseconds,
                delivery_timeout_ms=milliseconds,
            ),
            self._settings,
            self._seconds,
        )
        self._is_open = True
        return made

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        """Writes events in this order, without a key, and returns once all in-sync replicas have all of them. Raises
        TieredctlError `broker-refused` or `broker-unreachable`; the first unconfirmed event may have been written, and
        none after it."""
        asked = f"write {counted(len(events), 'event')} to {METADATA_TOPIC}-{metadata_partition}"
        with traced_request(self._server, asked):
            self._publish(metadata_partition, events)

    def close(self) -> None:
        """Ends the connections. Unconfirmed events are not retried."""
        if self._is_open:
            self._producer.close(timeout=LONGEST_WAIT_SECONDS)

    def _publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        from kafka.errors import (
            ClusterAuthorizationFailedError,
            KafkaError,
            SaslAuthenticationFailedError,
            TopicAuthorizationFailedError,
        )

        try:
            for event in events:
                sent = self._producer.send(METADATA_TOPIC, encode_event(event), partition=metadata_partition)
                sent.get(timeout=2 * self._seconds)  # it gives up itself, somewhat after its timeout
        except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError):
            hint = f"The user needs the operations Describe and Write on topic {METADATA_TOPIC}."
            message = f"{self._server} refused: the user may not write to {METADATA_TOPIC}."
            raise TieredctlError(ErrorCode.BROKER_REFUSED, message, hint=hint) from None
        except SaslAuthenticationFailedError as error:
            raise TieredctlError(ErrorCode.BROKER_REFUSED, f"{self._server} refused: {self._public(error)}.") from None
        except (KafkaError, OSError) as error:
            waited = f"did not confirm an event within the request timeout of {self._seconds:g} s"
            message = f"{self._server} {waited}: {self._public(error)}."
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message) from None

    def _public(self, error: Exception) -> str:
        return without_secrets(str(error), self._properties).rstrip(".")

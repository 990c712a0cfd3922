"""A client of kafka-python, for what librdkafka cannot ask: connected by Kafka's client properties, asked patiently."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from tieredctl.kafka.client_properties import Properties
from tieredctl.kafka.kafka_python_settings import kafka_python_settings

if TYPE_CHECKING:
    from kafka.net.compat import KafkaNetClient

_SECONDS_BETWEEN_TRIES = 0.1


def connected_client(bootstrap_server: str, properties: Properties, timeout_seconds: float) -> KafkaNetClient:
    """A client that knows its brokers. Raises TieredctlError for properties that it cannot follow, and whatever
    kafka-python raises where no broker answers in time."""
    from kafka.net.compat import KafkaNetClient

    # It logs what it also raises, and without a handler Python would write that to stderr.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    settings = kafka_python_settings(bootstrap_server, properties)
    milliseconds = int(timeout_seconds * 1000)
    client = KafkaNetClient(**settings, request_timeout_ms=milliseconds)
    try:
        client.check_version(timeout_ms=milliseconds)
    except BaseException:
        client.close()
        raise
    return client


def answer(client: KafkaNetClient, node_id: int | None, request: Any, timeout_seconds: float) -> Any:
    """The answer of a broker; of any one, where none is named. Asks again, for the time given, after errors that may
    pass; raises the others as kafka-python does."""
    from kafka.errors import KafkaError

    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            broker = client.least_loaded_node() if node_id is None else node_id
            return client.send_and_receive(broker, request, timeout_seconds * 1000)
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)

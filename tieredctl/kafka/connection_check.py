"""Connects once to a bootstrap server, as both clients will, and reports in one sentence why that fails.

The clients retry without end and report less: kafka-python loses what a broker answers before it closes a connection,
librdkafka has one sentence for all certificate errors. A failure found here ends a command after a single failed login,
so that no account is locked by repetition.
"""

from __future__ import annotations

import time
from contextlib import closing

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.client_properties import Properties
from tieredctl.kafka.kafka_python_settings import server_addresses
from tieredctl.kafka.server_connection import ServerConnection, Unreachable, server_name

_SECONDS_BETWEEN_TRIES = 0.2
_SECONDS_FOR_A_RESTART = 3.0
"""How long to retry a server that refuses connections: it may be starting."""


def demand_connection(
    bootstrap_server: str, properties: Properties, timeout_seconds: float, *, waits_for_restart: bool = True
) -> None:
    """Returns once one of the servers accepts the client. Contacts each once, except those that may be starting.

    `properties` are librdkafka's. Raises TieredctlError: `broker-refused` with the cause and the fix,
    `broker-unreachable`, `usage` for properties that Python does not support.
    """
    addresses = server_addresses(bootstrap_server)
    now = time.monotonic()
    deadline = now + timeout_seconds
    patient_until = now + min(timeout_seconds, _SECONDS_FOR_A_RESTART) * waits_for_restart
    while True:
        reasons: list[str] = []
        for host, port in addresses:
            seconds = max(0.1, (deadline - time.monotonic()) / (len(addresses) - len(reasons)))
            try:
                return _contact(host, port, properties, seconds)
            except Unreachable as error:
                reasons.append(f"{server_name(host, port)} {error}")
        if time.monotonic() + _SECONDS_BETWEEN_TRIES > patient_until:
            hint = "Check host, port and firewall, and that the broker is running."
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"{'; '.join(reasons)}.", hint=hint)
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _contact(host: str, port: int, properties: Properties, seconds: float) -> None:
    from kafka.protocol.metadata import MetadataRequest

    with closing(ServerConnection(host, port, properties, seconds)) as connection:
        if not connection.has_login:
            request = MetadataRequest(version=4, topics=[], allow_auto_topic_creation=False)
            connection.answer_to(request)

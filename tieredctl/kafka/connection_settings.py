"""Client properties as each client library takes them: the only place where one is told how to connect."""

from __future__ import annotations

from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.properties import Properties
from tieredctl.kafka.sign_in.mechanisms import sign_in_of
from tieredctl.kafka.tls_context import ssl_context

_LONGEST_RESPONSE_BYTES = 100_000_000
_SIGN_IN = ("sasl.jaas.config", "sasl.login.", "sasl.client.", "sasl.oauthbearer.", "sasl.kerberos.", "sasl.mechanism")
"""How the properties begin of which `sign_in` makes librdkafka's own."""


def kafka_python_settings(bootstrap_server: str, properties: Properties) -> dict[str, Any]:
    """Raises TieredctlError for properties with which nobody can sign in, and for invalid certificates."""
    protocol = security_protocol_of(properties)
    settings: dict[str, Any] = {
        "bootstrap_servers": _servers(bootstrap_server),
        "client_id": properties.get("client.id", "tieredctl"),
        "security_protocol": protocol,
        "receive_message_max_bytes": _LONGEST_RESPONSE_BYTES,
    }
    if protocol.startswith("SASL_"):
        settings |= sign_in_of(properties).for_kafka_python()
    if protocol.endswith("SSL"):
        settings["ssl_context"] = ssl_context(properties)
    return settings


def librdkafka_settings(bootstrap_server: str, properties: Properties) -> dict[str, Any] | None:
    """None where librdkafka's wheel cannot sign in. Raises TieredctlError for properties with which nobody can."""
    stated: dict[str, Any] = {name: value for name, value in properties.items() if not name.startswith(_SIGN_IN)}
    stated["bootstrap.servers"] = bootstrap_server
    if security_protocol_of(properties).startswith("SASL_"):
        own = sign_in_of(properties).for_librdkafka(bootstrap_server)
        return None if own is None else stated | own
    return stated


def server_addresses(bootstrap_server: str) -> list[tuple[str, int]]:
    """Host and port of each bootstrap server. Raises TieredctlError for one without a port."""
    addresses = [server.rpartition(":") for server in _servers(bootstrap_server)]
    for host, _, port in addresses:
        if not host or not port.isdecimal():
            raise TieredctlError(ErrorCode.USAGE, f"{host}{port} is not HOST:PORT.")
    return [(host.strip("[]"), int(port)) for host, _, port in addresses]


def security_protocol_of(properties: Properties) -> str:
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    return properties.get("security.protocol", "PLAINTEXT").upper()


def _servers(bootstrap_server: str) -> list[str]:
    return [server.strip() for server in bootstrap_server.split(",")]

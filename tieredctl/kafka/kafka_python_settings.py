"""librdkafka's client properties, translated for kafka-python.

Properties that would be weaker or different than with librdkafka are refused, not ignored.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.client_properties import Properties

KNOWN_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SYSTEMS_AUTHORITIES = ("", "probe")
_LONGEST_RESPONSE_BYTES = 100_000_000


def kafka_python_settings(bootstrap_server: str, properties: Properties) -> dict[str, Any]:
    """Raises TieredctlError for properties that kafka-python does not support, and for invalid certificates."""
    protocol = security_protocol_of(properties)
    settings: dict[str, Any] = {
        "bootstrap_servers": _servers(bootstrap_server),
        "client_id": properties.get("client.id", "tieredctl"),
        "security_protocol": protocol,
        "receive_message_max_bytes": _LONGEST_RESPONSE_BYTES,
    }
    if protocol.startswith("SASL_"):
        settings |= _login(properties)
    if protocol.endswith("SSL"):
        settings["ssl_context"] = ssl_context(properties)
    return settings


def server_addresses(bootstrap_server: str) -> list[tuple[str, int]]:
    """Host and port of each bootstrap server. Raises TieredctlError for one without a port."""
    found = [server.rpartition(":") for server in _servers(bootstrap_server)]
    for host, _, port in found:
        if not host or not port.isdecimal():
            raise TieredctlError(ErrorCode.USAGE, f"{host}{port} is not HOST:PORT.")
    return [(host.strip("[]"), int(port)) for host, _, port in found]


def security_protocol_of(properties: Properties) -> str:
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    return properties.get("security.protocol", "PLAINTEXT").upper()


def mechanism_of(properties: Properties) -> str:
    """The configured SASL mechanism."""
    return properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI"))


def _servers(bootstrap_server: str) -> list[str]:
    return [server.strip() for server in bootstrap_server.split(",")]


def _login(properties: Properties) -> dict[str, str | None]:
    mechanism = mechanism_of(properties)
    if mechanism not in KNOWN_MECHANISMS:
        raise _refused(f"the mechanism {mechanism} is not one of {', '.join(KNOWN_MECHANISMS)}")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": properties.get("sasl.username"),
        "sasl_plain_password": properties.get("sasl.password"),
    }


def ssl_context(properties: Properties) -> ssl.SSLContext:
    """How to encrypt a connection and check a broker's certificate. Raises TieredctlError for unusable certificates."""
    try:
        return _ssl_context(properties)
    except (OSError, ValueError) as error:
        raise _refused(f"the certificates cannot be used: {error}") from None


def _ssl_context(properties: Properties) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _trust(context, properties)
    _identify(context, properties)
    is_verified = properties.get("enable.ssl.certificate.verification", "true").lower() != "false"
    names_host = properties.get("ssl.endpoint.identification.algorithm", "https").lower() != "none"
    context.check_hostname = is_verified and names_host
    context.verify_mode = ssl.CERT_REQUIRED if is_verified else ssl.CERT_NONE
    return context


def _trust(context: ssl.SSLContext, properties: Properties) -> None:
    authorities = properties.get("ssl.ca.location", "")
    if "ssl.ca.pem" in properties:
        context.load_verify_locations(cadata=properties["ssl.ca.pem"])
    elif authorities in _SYSTEMS_AUTHORITIES:
        context.load_default_certs()
    elif Path(authorities).is_dir():
        context.load_verify_locations(capath=authorities)
    else:
        context.load_verify_locations(cafile=authorities)
    if revoked := properties.get("ssl.crl.location"):
        context.load_verify_locations(cafile=revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, properties: Properties) -> None:
    """The client's own certificate."""
    if "ssl.keystore.location" in properties:
        raise _refused("Python does not read PKCS12 key stores; write its key and certificates as PEM")
    password = properties.get("ssl.key.password", "")
    certificate, key = properties.get("ssl.certificate.location"), properties.get("ssl.key.location")
    if certificate is not None:
        context.load_cert_chain(certificate, key, password)
    elif "ssl.certificate.pem" in properties:
        # Python takes a certificate only from files; only the owner can read the folder.
        with TemporaryDirectory() as folder:
            certificate_file, key_file = Path(folder, "certificate.pem"), Path(folder, "key.pem")
            certificate_file.write_text(properties["ssl.certificate.pem"])
            key_file.write_text(properties.get("ssl.key.pem", ""))
            context.load_cert_chain(certificate_file, key_file, password)


def _refused(reason: str) -> TieredctlError:
    return TieredctlError(ErrorCode.USAGE, f"kafka-python cannot use --command-config: {reason}.")

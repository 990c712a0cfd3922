"""Listeners of a broker that ask for TLS, for a password, or for both, with a certificate made for the occasion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .certificates import put_in_stores, self_signed

USERNAME = "rig-user"
PASSWORD = "rig-password"
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENER_COUNT = 3

_PLAIN_LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USERNAME}="{PASSWORD}";'
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True)
class SecureListeners:
    """Where clients reach a broker's guarded listeners, and what they must show.

    Every SASL listener takes each of SASL_MECHANISMS. `certificate` is a PEM file to be trusted as the authority.
    """

    ssl: str
    sasl_plaintext: str
    sasl_ssl: str
    certificate: Path
    username: str = USERNAME
    password: str = PASSWORD

    @property
    def listeners(self) -> tuple[str, ...]:
        """The values that the broker's `listeners` property gains."""
        return (f"SSL://{self.ssl}", f"SASL_PLAINTEXT://{self.sasl_plaintext}", f"SASL_SSL://{self.sasl_ssl}")

    def client_properties(self, security_protocol: str, mechanism: str = "PLAIN") -> dict[str, str]:
        """librdkafka's properties for a client of one listener: `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
        address = {"SSL": self.ssl, "SASL_PLAINTEXT": self.sasl_plaintext, "SASL_SSL": self.sasl_ssl}
        properties = {"bootstrap.servers": address[security_protocol], "security.protocol": security_protocol}
        if "SSL" in security_protocol.split("_"):
            properties["ssl.ca.location"] = str(self.certificate)
        if security_protocol.startswith("SASL"):
            properties |= {
                "sasl.mechanism": mechanism,
                "sasl.username": self.username,
                "sasl.password": self.password,
            }
        return properties


def open_secure_listeners(ports: list[int], folder: Path) -> tuple[SecureListeners, dict[str, str]]:
    """The guarded listeners on three `ports`, and the broker properties behind them; keys are made in `folder`.

    The SCRAM passwords are no property: give `scram_arguments()` to the storage tool.
    """
    key_store, certificate = folder / "broker.p12", folder / "authority.pem"
    made = self_signed("localhost", datetime.now(UTC) + timedelta(days=29), folder, "127.0.0.1")
    put_in_stores(made, PASSWORD, key_store, certificate)
    ssl, sasl_plaintext, sasl_ssl = (f"localhost:{port}" for port in ports)
    properties = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(key_store),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(SASL_MECHANISMS)
        for mechanism in SASL_MECHANISMS:
            login = _PLAIN_LOGIN if mechanism == "PLAIN" else _SCRAM_LOGIN
            properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = login
    return SecureListeners(ssl, sasl_plaintext, sasl_ssl, certificate), properties


def scram_arguments() -> list[str]:
    """Arguments of `StorageTool format` that store the user's SCRAM passwords; Kafka knows them since 3.5."""
    return [
        argument
        for mechanism in SASL_MECHANISMS
        if mechanism.startswith("SCRAM")
        for argument in ("--add-scram", f"{mechanism}=[name={USERNAME},password={PASSWORD}]")
    ]

"""PLAIN and SCRAM: a user and a password, by the client libraries' own mechanisms."""

from __future__ import annotations

from typing import Any

from tieredctl.kafka.properties import Properties
from tieredctl.kafka.sign_in.sign_in import SignIn

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class PasswordSignIn(SignIn):
    """Signs in by `sasl.username` and `sasl.password`."""

    def __init__(self, mechanism: str, properties: Properties) -> None:
        self.mechanism = mechanism
        self._user, self._password = properties.get("sasl.username", ""), properties.get("sasl.password", "")

    def identity(self) -> str:
        return self._user

    def for_kafka_python(self) -> dict[str, Any]:
        return {
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self._user,
            "sasl_plain_password": self._password,
        }

    def for_librdkafka(self, bootstrap_server: str) -> dict[str, Any]:  # noqa: ARG002 - the same for all servers
        return {"sasl.mechanism": self.mechanism, "sasl.username": self._user, "sasl.password": self._password}

"""What every way to sign in offers to the two client libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol


class Exchange(Protocol):
    """One SASL exchange, as kafka-python drives it (`kafka.net.sasl.abc.SaslMechanism`)."""

    def auth_bytes(self) -> bytes: ...

    def receive(self, auth_bytes: bytes) -> None: ...

    def is_done(self) -> bool: ...

    def is_authenticated(self) -> bool: ...

    def auth_details(self) -> str: ...


class SignIn(ABC):
    """A mechanism with its credentials. Clients of the same properties share one, and so its tokens."""

    mechanism: str
    shown = "the user or the password"
    """What a server refuses, where it refuses the client."""
    hint = "Check the user and the password in --command-config. Only one login was tried."

    def identity(self) -> str | None:
        """Who signs in, once that worked, as far as the credentials say it."""
        return None

    @abstractmethod
    def for_kafka_python(self) -> dict[str, Any]:
        """Settings of its clients; with `host`, also the arguments of its mechanism."""

    @abstractmethod
    def for_librdkafka(self, bootstrap_server: str) -> dict[str, Any] | None:
        """Settings of its clients; None where its wheel cannot sign in."""


class OwnExchange(SignIn):
    """A mechanism whose exchange is tieredctl's own: kafka-python's passes on its own options alone, of which the
    token provider may be any object."""

    @abstractmethod
    def exchange(self, host: str) -> Exchange:
        """Begins an exchange with a server. Raises TieredctlError where there are no credentials."""

    def for_kafka_python(self) -> dict[str, Any]:
        from kafka.net.sasl import register_sasl_mechanism

        register_sasl_mechanism(self.mechanism, _begun, overwrite=True)
        return {"sasl_mechanism": self.mechanism, "sasl_oauth_token_provider": self}


def _begun(*, host: str, sasl_oauth_token_provider: OwnExchange, **_: object) -> Exchange:
    return sasl_oauth_token_provider.exchange(host)

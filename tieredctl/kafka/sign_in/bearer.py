"""OAUTHBEARER (RFC 7628, KIP-255): a bearer token, and extensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tieredctl.kafka.sign_in.sign_in import OwnExchange
from tieredctl.kafka.sign_in.tokens import Token, TokenSource, claims

_SEPARATOR = "\x01"
_ACKNOWLEDGED_ERROR = b"\x01"
_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999, after which Python knows no date."""


class BearerSignIn(OwnExchange):
    """Signs in by tokens from a source."""

    mechanism = "OAUTHBEARER"
    shown = "the token"

    def __init__(self, source: TokenSource, extensions: Mapping[str, str], hint: str) -> None:
        self._source, self._extensions = source, extensions
        self.hint = f"{hint} Only one login was tried."

    def identity(self) -> str | None:
        token = self._source.token()
        who = claims(token.value).get("sub")
        ends = (
            datetime.fromtimestamp(min(token.ends_at, _LAST_SECOND), UTC)
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z")
        )
        return f"{who}, by a token that ends {ends}" if isinstance(who, str) else None

    def exchange(self, host: str) -> BearerExchange:  # noqa: ARG002 - the same for all servers
        return BearerExchange(self._source.token().value, self._extensions)

    def for_librdkafka(self, bootstrap_server: str) -> dict[str, Any]:  # noqa: ARG002 - the same for all servers
        return librdkafka_settings(self._source.token, self._extensions)


def librdkafka_settings(token: Callable[[], Token], extensions: Mapping[str, str]) -> dict[str, Any]:
    """OAUTHBEARER with tokens of ours; librdkafka asks for the next one after four fifths of a token's lifetime."""

    def give(_config: str) -> tuple[str, float, str, Mapping[str, str]]:
        given = token()
        return given.value, given.ends_at, "tieredctl", extensions

    return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": give}


class BearerExchange:
    """Shows one token."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        self._token, self._extensions = token, extensions
        self._is_refused = self._is_accepted = False

    def auth_bytes(self) -> bytes:
        if self._is_refused:
            return _ACKNOWLEDGED_ERROR
        pairs = {"auth": f"Bearer {self._token}", **self._extensions}
        text = _SEPARATOR.join(f"{name}={value}" for name, value in pairs.items())
        return f"n,,{_SEPARATOR}{text}{_SEPARATOR * 2}".encode()

    def receive(self, auth_bytes: bytes) -> None:
        # A server that refuses says so in JSON, and closes the exchange once that was acknowledged.
        self._is_refused, self._is_accepted = bool(auth_bytes), not auth_bytes

    def is_done(self) -> bool:
        return self._is_accepted

    def is_authenticated(self) -> bool:
        return self._is_accepted

    def auth_details(self) -> str:
        return "signed in by OAUTHBEARER"

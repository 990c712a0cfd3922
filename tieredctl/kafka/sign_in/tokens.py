"""Bearer tokens that end: fetched once, shared by all connections, and fetched again before they end."""

from __future__ import annotations

import json
import math
import time
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError

_REFRESH_AFTER = 0.8
"""The share of a token's lifetime after which it is fetched again: Kafka's sasl.login.refresh.window.factor."""
_SECONDS_OF_A_REFUSAL = 60.0
"""How long a refused secret is not tried again, so that no account is locked by repetition."""


class Token(NamedTuple):
    """A token, and when it ends, in Unix seconds."""

    value: str
    ends_at: float


def demand_lasting(token: Token, what: str, hint: str) -> Token:
    """The token itself; `what` begins a sentence. Raises TieredctlError `broker-refused` where it has ended."""
    if token.ends_at <= time.time():
        raise TieredctlError(ErrorCode.BROKER_REFUSED, f"{what} has ended.", hint=hint)
    return token


class TokenSource:
    """Gives a token that has not ended: another in time, or the one before for as long as it lasts. For any number of
    threads."""

    def __init__(self, fetch: Callable[[], Token], *, shows_secret: bool = True) -> None:
        """`shows_secret` is whether somebody is shown a secret to fetch a token, and may refuse it."""
        self._fetch = fetch
        self._shows_secret = shows_secret
        self._lock = Lock()
        self._token: Token | None = None
        self._refresh_at = -math.inf
        self._refusal: TieredctlError | None = None
        self._refused_until = -math.inf

    def token(self) -> Token:
        """Raises TieredctlError where there is none: `broker-refused`, `broker-unreachable` or `usage`."""
        with self._lock:
            now = time.time()
            if self._token is not None and now < self._refresh_at:
                return self._token
            try:
                fetched = self._fetched()
            except TieredctlError:
                if self._token is not None and now < self._token.ends_at:
                    return self._token
                raise
            self._token = fetched
            self._refresh_at = now + (fetched.ends_at - now) * _REFRESH_AFTER
            return fetched

    def _fetched(self) -> Token:
        if self._refusal is not None and time.monotonic() < self._refused_until:
            raise self._refusal
        try:
            fetched = self._fetch()
        except TieredctlError as error:
            if self._shows_secret and error.code != ErrorCode.BROKER_UNREACHABLE:
                self._refusal, self._refused_until = error, time.monotonic() + _SECONDS_OF_A_REFUSAL
            raise
        self._refusal = None
        return fetched


def claims(token: str) -> dict[str, object]:
    """What a JWT says (RFC 7519), unverified: that is for who is shown it. Empty for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        payload = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (Base64Error, ValueError, RecursionError):
        return {}
    return payload if isinstance(payload, dict) else {}


def ends_at(token: str) -> float | None:
    """When a JWT ends, in Unix seconds; None where it does not say."""
    return finite(claims(token).get("exp"))


def finite(stated: object) -> float | None:
    """A number of a JSON document; None for anything else, and for one beyond all floats."""
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    try:
        number = float(stated)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

"""Tokens that end: when another one is fetched, and what is done where none can be had."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.refusals import refused_with
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.sign_in import tokens
from tieredctl.kafka.sign_in.tokens import Token, TokenSource

SECONDS = 100
LATE, AFTER = 90, 101
"""When a token of so many seconds is to be renewed, and when it has ended."""
REFUSALS = [ErrorCode.BROKER_REFUSED, ErrorCode.USAGE]


@dataclass
class Clock:
    """Stands in for the module `time`, and goes on where it is told."""

    now: float = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@dataclass
class Issuer:
    """Gives tokens that last for SECONDS, unless it fails."""

    clock: Clock
    failure: ErrorCode | None = None
    asked: int = field(default=0)

    def token(self) -> Token:
        self.asked += 1
        if self.failure is not None:
            raise TieredctlError(self.failure, "No token.")
        return Token(f"token {self.asked}", self.clock.now + SECONDS)


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    clock = Clock()
    monkeypatch.setattr(tokens, "time", clock)
    return Issuer(clock)


@pytest.mark.parametrize("shows_secret", [True, False])
@pytest.mark.parametrize("failure", [*REFUSALS, ErrorCode.BROKER_UNREACHABLE])
def test_a_token_serves_until_it_ends_where_no_other_can_be_had(
    issuer: Issuer, failure: ErrorCode, shows_secret: bool
) -> None:
    source = TokenSource(issuer.token, shows_secret=shows_secret)
    first = source.token()
    issuer.failure, issuer.clock.now = failure, LATE

    assert source.token() == first
    assert issuer.asked == 2
    issuer.clock.now = AFTER
    with refused_with(failure):
        source.token()


@pytest.mark.parametrize("failure", REFUSALS)
def test_a_secret_that_was_refused_is_not_shown_again_at_once(issuer: Issuer, failure: ErrorCode) -> None:
    source = TokenSource(issuer.token)
    source.token()
    issuer.failure, issuer.clock.now = failure, LATE
    source.token()
    issuer.clock.now = AFTER
    with refused_with(failure):
        source.token()

    assert issuer.asked == 2


@pytest.mark.parametrize("failure", REFUSALS)
def test_a_file_is_read_again_at_once(issuer: Issuer, failure: ErrorCode) -> None:
    source = TokenSource(issuer.token, shows_secret=False)
    issuer.failure = failure
    with refused_with(failure):
        source.token()
    issuer.failure = None

    assert source.token().value == "token 2"

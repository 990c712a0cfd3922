"""Questions about a bucket's settings, each of which may have no answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.bucket_settings import Unanswered
from tieredctl.process.tracing import traced
from tieredctl.storage.retrying import RetryPolicy

_Answer = TypeVar("_Answer")
_NOT_ANSWERED = (ErrorCode.STORE_FORBIDDEN, ErrorCode.STORE_UNREACHABLE, ErrorCode.UNREADABLE)
"""A store whose objects were listed before can be reached: an error of the server is of this question alone."""


@dataclass(frozen=True, slots=True)
class SettingsAsked:
    """Asks one store, retries what may pass, and notes what it does not answer."""

    url: str
    unanswered: list[Unanswered] = field(default_factory=list)
    _policy: RetryPolicy = field(default_factory=RetryPolicy)

    def at(self, question: str, right: str, request: Callable[[], _Answer]) -> _Answer | None:
        """The answer; None where the store refuses the question or does not know it, which is noted once. Raises
        TieredctlError where the store does not answer at all."""
        try:
            with traced("tieredctl.storage", self.url, question):
                return self._policy.run(lambda _: request())
        except TieredctlError as error:
            if error.code not in _NOT_ANSWERED:
                raise
            self.note(question, right, error)
            return None

    def note(self, question: str, right: str, error: TieredctlError) -> None:
        """Notes that a question has no answer."""
        unanswered = Unanswered(question, right, error.message, error.code is not ErrorCode.STORE_FORBIDDEN)
        if unanswered not in self.unanswered:
            self.unanswered.append(unanswered)

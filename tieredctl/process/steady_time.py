"""The time of a run: what the host's clock was when it began, and what has passed since. A clock that is set meanwhile
makes nothing older or younger, and where host and store agreed about the time, they still do."""

from __future__ import annotations

import time

_PASSING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that nobody sets; where there is one, it goes on while the machine sleeps."""


class _SteadyTime:
    """The steady time of this process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._ahead_ns = time.time_ns() - time.clock_gettime_ns(_PASSING)

    def now_ms(self) -> int:
        return (time.clock_gettime_ns(_PASSING) + self._ahead_ns) // 1_000_000


_now = _SteadyTime()


def begin() -> None:
    """Takes the time from the host's clock: for a run that begins, and one that looks at the world once more."""
    _now.begin()


def now_ms() -> int:
    """The time, in ms since the epoch."""
    return _now.now_ms()

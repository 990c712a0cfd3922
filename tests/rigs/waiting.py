"""Waiting for a condition of the outside world, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_INTERVAL_SECONDS = 0.1


class DeadlineMissed(Exception):
    """A condition did not come true in time; the text names it and says what was seen last."""


def wait_until(
    condition: Callable[[], bool],
    description: str,
    seconds: float,
    describe_progress: Callable[[], str] = lambda: "nothing more is known",
) -> None:
    """Return as soon as `condition()` holds; raise DeadlineMissed once `seconds` have passed without it."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise DeadlineMissed(f"not within {seconds:g} s: {description} ({describe_progress()})")
        time.sleep(POLL_INTERVAL_SECONDS)

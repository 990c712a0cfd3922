"""Limits a rate."""

from __future__ import annotations

import time
from collections.abc import Callable

from tieredctl.process.interruption import pause


class Pace:
    """At most this many objects per second, over the whole run."""

    def __init__(
        self,
        objects_a_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self._rate = objects_a_second
        self._clock = clock
        self._sleep = sleep
        self._next = clock()

    def __call__(self, objects: int) -> None:
        """Waits until this many more objects may be started."""
        self._sleep(max(0.0, self._next - self._clock()))
        self._next = max(self._next, self._clock()) + objects / self._rate

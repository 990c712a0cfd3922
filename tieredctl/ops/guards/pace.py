"""How fast something is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from tieredctl.process.interruption import pause


class Pace:
    """At most this many of something per second, such as objects or bytes, over the whole run and all its threads."""

    def __init__(
        self,
        a_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self._rate = a_second
        self._clock = clock
        self._sleep = sleep
        self._next = clock()
        self._reserving = Lock()

    def __call__(self, count: int) -> None:
        """Waits until this many more may be started."""
        with self._reserving:
            begins = max(self._next, self._clock())
            self._next = begins + count / self._rate
        self._sleep(max(0.0, begins - self._clock()))

"""Simulated time: what happens when, in an order that the seed alone decides."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

Action = Callable[[], None]


class Schedule:
    """Actions by time; those of the same time in the order in which they were added."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._numbers = count()
        self._actions: list[tuple[int, int, Action]] = []

    def after(self, delay_ms: int, action: Action) -> None:
        """Does something so much later."""
        heappush(self._actions, (self.now_ms + delay_ms, next(self._numbers), action))

    def every(self, interval_ms: int, action: Action, first_ms: int) -> None:
        """Does something again and again."""

        def again() -> None:
            action()
            self.after(interval_ms, again)

        self.after(first_ms, again)

    def run(self, is_over: Callable[[], bool], until_ms: int) -> None:
        """Goes on until something is over, or until a time."""
        while self._actions and not is_over() and self._actions[0][0] <= until_ms:
            self.now_ms, _, action = heappop(self._actions)
            action()

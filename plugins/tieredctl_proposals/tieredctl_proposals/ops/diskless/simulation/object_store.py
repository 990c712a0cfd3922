"""The simulated object store: what is in it, what was asked of it, and how long it took."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tieredctl_proposals.ops.diskless.simulation.schedule import Schedule

_KEYS_A_PAGE = 1_000
_FASTEST_MS, _SLOWEST_MS = 20, 120
_SLOW = 50
_FAILURES = 0.01


class StoredFile(NamedTuple):
    """An object: its bytes, and when it was uploaded by the store's clock."""

    size: int
    modified_ms: int


class SimulatedStore:
    """Answers late, more so at times, and sometimes not at all though it has done what was asked."""

    def __init__(self, schedule: Schedule, chance: Random, slow_rate: float, skew_ms: int) -> None:
        self.objects: dict[str, StoredFile] = {}
        self.puts = self.gets = self.lists = self.deletes = 0
        self.put_bytes = 0
        self._byte_ms = 0
        self._bytes = 0
        self._since_ms = 0
        self._schedule, self._chance = schedule, chance
        self._slow_rate, self._skew_ms = slow_rate, skew_ms

    @property
    def byte_ms(self) -> int:
        """Bytes times milliseconds that were stored until now."""
        return self._byte_ms + self._bytes * (self._schedule.now_ms - self._since_ms)

    def put(self, key: str, size: int, answer: Callable[[], None]) -> None:
        """Stores an object; it is there before the answer."""
        self.puts += 1
        self.put_bytes += size

        def store() -> None:
            self.objects[key] = StoredFile(size, self._schedule.now_ms + self._skew_ms)
            self._grow(size)
            answer()

        self._schedule.after(self._latency_ms(), store)

    def get(self, key: str, answer: Callable[[bool], None]) -> None:
        """Reads of an object; says whether it was there."""
        self.gets += 1
        self._schedule.after(self._latency_ms(), lambda: answer(key in self.objects))

    def delete(self, key: str, deleted: Callable[[], None], answer: Callable[[], None]) -> None:
        """Deletes an object: `deleted` is told if it was there, and nobody may be answered."""
        self.deletes += 1

        def remove() -> None:
            if (stored := self.objects.pop(key, None)) is not None:
                self._grow(-stored.size)
                deleted()
            if self._chance.random() >= _FAILURES:
                answer()

        self._schedule.after(self._latency_ms(), remove)

    def list_older(self, than_ms: int) -> list[str]:
        """The keys of objects that were uploaded before a time, in order."""
        self.lists += 1 + len(self.objects) // _KEYS_A_PAGE
        return sorted(key for key, stored in self.objects.items() if stored.modified_ms < than_ms)

    def _latency_ms(self) -> int:
        slow = _SLOW if self._chance.random() < self._slow_rate else 1
        return slow * self._chance.randint(_FASTEST_MS, _SLOWEST_MS)

    def _grow(self, size: int) -> None:
        self._byte_ms = self.byte_ms
        self._since_ms = self._schedule.now_ms
        self._bytes += size

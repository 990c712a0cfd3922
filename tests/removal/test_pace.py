"""`orphans apply --rate`: so many objects a second, by a clock of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tieredctl.ops.guards.pace import Pace


@dataclass
class Clock:
    """Time that passes only where somebody sleeps, or works."""

    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_those_before_are_paid_for_by_waiting_and_slow_work_saves_up_nothing() -> None:
    clock = Clock()
    pace = Pace(10, clock.time, clock.sleep)

    moments = []
    for seconds_of_work in (0, 0, 30, 1_000, 0):
        clock.now += seconds_of_work
        pace(500)
        moments.append(clock.now)

    assert moments == [100, 150, 200, 1_200, 1_250]


def test_over_the_whole_run_the_rate_is_kept() -> None:
    for objects_a_second in (0.5, 3, 1_000):
        clock = Clock()
        pace = Pace(objects_a_second, clock.time, clock.sleep)

        for _ in range(20):
            pace(7)

        assert (clock.now - 100) * objects_a_second == pytest.approx(19 * 7), objects_a_second

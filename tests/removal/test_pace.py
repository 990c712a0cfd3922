"""`orphans apply --rate`: so many objects a second, by a clock of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tieredctl.ops.orphan_removal.limits import Pace


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


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_objects_are_not_waited_for(clock: Clock) -> None:
    Pace(10, clock.time, clock.sleep)(500)

    assert clock.now == 100


def test_the_next_wait_until_those_before_are_paid_for(clock: Clock) -> None:
    pace = Pace(10, clock.time, clock.sleep)
    pace(500)

    pace(500)

    assert clock.now == 150


def test_time_that_the_work_took_is_not_waited_again(clock: Clock) -> None:
    pace = Pace(10, clock.time, clock.sleep)
    pace(500)
    clock.now += 30

    pace(500)

    assert clock.slept[-1] == 20


def test_slow_work_saves_up_nothing(clock: Clock) -> None:
    pace = Pace(10, clock.time, clock.sleep)
    pace(500)
    clock.now += 1_000
    pace(500)

    pace(500)

    assert clock.slept[-1] == 50


@pytest.mark.parametrize("objects_a_second", [0.5, 3, 1_000])
def test_over_the_whole_run_the_rate_is_kept(clock: Clock, objects_a_second: float) -> None:
    pace = Pace(objects_a_second, clock.time, clock.sleep)

    for _ in range(20):
        pace(7)

    assert (clock.now - 100) * objects_a_second == pytest.approx(19 * 7)

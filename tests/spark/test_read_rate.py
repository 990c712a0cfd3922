"""A read rate is kept by all processes of a machine together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tieredctl_spark import read_rate
from tieredctl_spark.read_rate import RateLimited, ReadRate

from tieredctl.storage.memory import MemoryStore


class Clock:
    """Goes on only where somebody waits."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clock:
    clock = Clock()
    monkeypatch.setattr(read_rate, "time", clock)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return clock


def test_what_is_read_takes_the_time_that_the_rate_gives_it(clock: Clock) -> None:
    store = MemoryStore()
    store.put("a", b"x" * 500)
    limited = RateLimited(store, ReadRate(100, "run"))

    assert limited.read("a", 0, 200) == b"x" * 200
    assert b"".join(limited.stream("a", chunk_size=100)) == b"x" * 500
    limited.read("a", 0, 1)

    assert clock.now == pytest.approx(1_000 + 7)


def test_another_process_of_the_machine_keeps_to_the_same_rate(clock: Clock, tmp_path: Path) -> None:
    program = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from tieredctl_spark import read_rate\n"
        "read_rate.time.monotonic = lambda: 1000.0\n"
        "read_rate.ReadRate(100, 'run').wait_for(300)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)

    waited = ReadRate(100, "run").wait_for(1)

    assert waited == pytest.approx(3)
    assert ReadRate(100, "another").wait_for(1) == 0


def test_a_rate_does_not_save_up_what_was_not_read(clock: Clock) -> None:
    rate = ReadRate(100, "run")
    rate.wait_for(100)
    clock.now += 3_600

    assert rate.wait_for(1_000) == 0
    assert rate.wait_for(1) == pytest.approx(10)

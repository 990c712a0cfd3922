"""Runs commands in turn, several times, and keeps the resources that the system reports for them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPETITIONS = 5


@dataclass(frozen=True)
class Run:
    """One run of a command: wall-clock and CPU (user and system) in seconds, peak memory in MB."""

    wall: float
    cpu: float
    megabytes: float


@dataclass
class Contender:
    """A command, and all of its runs. Its output goes to /dev/null."""

    name: str
    command: Sequence[str]
    exit_code: int = 0
    runs: list[Run] = field(default_factory=list)
    watch: Callable[[int], None] = lambda _: None
    """Is told the number of each process."""

    def median(self, what: str) -> float:
        """Of all runs; `what` names a field of `Run`."""
        return float(statistics.median(getattr(run, what) for run in self.runs))

    def spread(self, what: str) -> tuple[float, float]:
        """The minimum and the maximum."""
        values = [getattr(run, what) for run in self.runs]
        return min(values), max(values)

    def run(self) -> None:
        """Runs it once more. Raises RuntimeError where the command fails."""
        with open(os.devnull, "wb") as out:
            began = time.perf_counter()
            process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, env=_environment()
            )
            self.watch(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - began
            said = process.stderr.read().decode(errors="replace") if process.stderr else ""
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != self.exit_code:
            raise RuntimeError(f"{self.name} ended with {process.returncode}: {said.strip()[-500:]}")
        self.runs.append(Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))


def race(*contenders: Contender, repetitions: int = REPETITIONS) -> None:
    """Runs the contenders in turn, so that other load on the machine affects all of them alike."""
    for number in range(repetitions):
        for contender in contenders:
            print(f"  {number + 1} of {repetitions}: {contender.name}", file=sys.stderr, flush=True)
            contender.run()


def tieredctl(*words: str | Path) -> list[str]:
    """The installed command line."""
    return [str(Path(sys.executable).with_name("tieredctl")), *map(str, words)]


def python(module: str, *words: str | Path) -> list[str]:
    """A module of this folder as a process of its own."""
    return [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}

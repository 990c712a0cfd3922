"""An exporter in a process of its own, and what it serves."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.cli.command_line import SECONDS, environment
from tests.rigs.waiting import wait_until

_SETTLE_SECONDS = 60
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, ...], float]
"""By name, then labels as `name=value` in their order."""


class RunningExporter:
    """An exporter in a process of its own."""

    def __init__(self, *words: str | Path) -> None:
        command = [sys.executable, "-m", "tieredctl", "exporter", "--listen", "127.0.0.1:0", "--interval", "1s"]
        self.process = subprocess.Popen(
            [*command, *map(str, words)], stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert self.process.stderr
        found = re.search(r"http://\S+", self.process.stderr.readline())
        assert found
        self.url = found[0]

    def scrape(self, accept: str = OPEN_METRICS) -> tuple[str, str]:
        """Content type and body."""
        with urlopen(Request(self.url, headers={"Accept": accept}), timeout=SECONDS) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def samples(self) -> Samples:
        return samples_of(self.scrape()[1])

    def awaited(self, condition: Callable[[Samples], bool]) -> Samples:
        """The samples as soon as they are as they should be."""
        found: list[Samples] = []

        def holds() -> bool:
            found.append(self.samples())
            return condition(found[-1])

        wait_until(holds, "the metrics are as they should be", _SETTLE_SECONDS, lambda: f"last seen: {found[-1]}")
        return found[-1]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        assert self.process.stderr
        self.said = self.process.stderr.read()
        return self.process.wait(SECONDS)


def samples_of(text: str) -> Samples:
    """Read as strictly as OpenMetrics demands."""
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


@contextmanager
def exporter(*words: str | Path) -> Iterator[RunningExporter]:
    running = RunningExporter(*words)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        assert running.process.stderr
        running.process.stderr.close()


def is_up(samples: Samples) -> bool:
    return samples["tieredctl_exporter_up",] == 1


def is_without_broker(samples: Samples) -> bool:
    """Whether neither part that asks brokers has an answer: one look may ask the first before they go away, and the
    second after."""
    return all(samples["tieredctl_exporter_part_up", f"part={part}"] == 0 for part in ("cluster", "metadata"))

"""Prometheus text for a node exporter's textfile collector: what a cron job leaves for the alerting to read."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from tieredctl.errors import ExitCode
from tieredctl.model.file_beginnings import METRICS
from tieredctl.model.findings import Finding
from tieredctl.process.replaced_file import READABLE_BY_ALL, replaced_file

_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VALUE = re.compile(r"^(tieredctl_.* )(\S+)$", re.MULTILINE)
_EXACT = 1 << 53
"""Below it every whole number is a float, too."""
_PREFIX = "tieredctl_"
_GROUPED_BY = {"status": "status", "causes": "cause"}
"""Fields of a summary that have numbers for each of several groups, and the label that tells those apart."""
_OWN = ("findings", "exit_code", "last_run_timestamp_seconds")
"""Families that are made of other things than the summary."""


@dataclass(slots=True)
class _Families(Collector):
    """Gauges by name, each with its samples together as the formats demand."""

    command: str
    families: dict[str, Metric] = field(default_factory=dict)

    def add(self, name: str, meaning: str, value: float, **labels: str) -> None:
        family = self.families.setdefault(name, Metric(f"{_PREFIX}{name}", meaning, "gauge"))
        family.add_sample(family.name, {"command": self.command, **labels}, value)

    def collect(self) -> Iterable[Metric]:
        return self.families.values()


def metrics_text(command: str, summary: Mapping[str, Any], findings: Iterable[Finding], exit_code: ExitCode) -> str:
    """A gauge for each number of a summary, one for findings by code, exit code and time of the run: as Prometheus and
    OpenMetrics both read it."""
    families = _Families(command)
    for name, value in summary.items():
        _add_field(families, name, value)
    counts = Counter((finding.code, finding.severity.label) for finding in findings)
    for (code, severity), count in sorted(counts.items()):
        families.add("findings", "Findings by code and severity.", count, code=code, severity=severity)
    families.add("exit_code", "The run's exit code.", int(exit_code))
    families.add("last_run_timestamp_seconds", "When the run ended, in seconds since the epoch.", int(time.time()))
    text: bytes = generate_latest(families)  # type: ignore[no-untyped-call]
    return _VALUE.sub(_plain, text.decode())


def _plain(sample: re.Match[str]) -> str:
    """A sample with its whole number as scripts expect it: `115`, not `115.0`, and seconds without an exponent."""
    value = float(sample[2])
    is_whole = value.is_integer() and abs(value) < _EXACT
    return sample[1] + (str(int(value)) if is_whole else sample[2])


def _add_field(families: _Families, name: str, value: Any) -> None:
    """A summary's number, or the numbers that it groups."""
    if name in _GROUPED_BY and isinstance(value, Mapping):
        label = _GROUPED_BY[name]
        for group, numbers in value.items():
            for measure, number in numbers.items():
                meaning = f"{measure.capitalize()} by {label}."
                families.add(f"{_snake(measure)}_by_{label}", meaning, number, **{label: str(group)})
    elif isinstance(value, dict):
        for inner, number in value.items():
            _add_number(families, f"{name}_{inner}", number)
    else:
        _add_number(families, name, value)


def _add_number(families: _Families, name: str, value: Any) -> None:
    metric = _snake(name)
    if isinstance(value, int | float) and _NAME.fullmatch(metric) and metric not in _OWN:
        families.add(metric, f"{name} of the run's summary.", value)


def _snake(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()


def write_metrics(path: Path, text: str) -> None:
    """Replaces the file in one step: a collector never sees half of it. Raises TieredctlError, also for a file that
    does not hold earlier metrics of tieredctl."""
    with replaced_file(path, force=False, own=METRICS, mode=READABLE_BY_ALL) as file:
        file.write(text.encode())

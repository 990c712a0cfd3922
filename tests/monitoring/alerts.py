"""Prometheus's own evaluation of the rules, on samples that were scraped: `promtool test rules`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from tests.cli.command_line import REPOSITORY
from tests.cli.running_exporter import Samples

RULES = REPOSITORY / "examples" / "alerts.yaml"
_MINUTES = 150
"""Longer than any rule waits, and twice what it looks back."""
_TIMES = "_timestamp_seconds"


def rule_names(group: str | None = None) -> set[str]:
    """Of all rules, or of one group."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"] for one in groups if group in (None, one["name"]) for rule in one["rules"]}


def firing(scrapes: Sequence[Samples], at: float, folder: Path, *, up: int = 1) -> set[str]:
    """The alerts that fire where a target was scraped each minute, and gave each of these for as long as the next one;
    `at` is when the last was taken, in seconds since the epoch."""
    series = [{"series": 'up{instance="i",job="tieredctl"}', "values": f"{up}x{_MINUTES}"}]
    keys = dict.fromkeys(key for scrape in scrapes for key in scrape)
    each = _MINUTES // len(scrapes)
    for key in keys:
        values = " ".join(_value(key, scrape.get(key), at, each) for scrape in scrapes)
        series.append({"series": _series(key), "values": values})
    asked = {name: f'group(ALERTS{{alertname="{name}",alertstate="firing"}})' for name in rule_names()}
    differing = _not_one([*asked.values(), "vector(2)"], series, folder)
    assert "vector(2)" in differing
    return {name for name, expr in asked.items() if json.dumps(expr) not in differing}


def _not_one(exprs: Sequence[str], series: list[dict[str, str]], folder: Path) -> str:
    """What promtool says of those whose value is not 1."""
    expected = [{"labels": "{}", "value": 1}]
    asked = [{"expr": expr, "eval_time": f"{_MINUTES - 5}m", "exp_samples": expected} for expr in exprs]
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}],
    }
    file = folder / "rules-test.yaml"
    file.write_text(json.dumps(test))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _series(key: Iterable[str]) -> str:
    name, *labels = key
    pairs = [label.partition("=") for label in labels] + [("instance", "", "i"), ("job", "", "tieredctl")]
    return f"{name}{{{','.join(f'{label}={json.dumps(value)}' for label, _, value in pairs)}}}"


def _value(key: tuple[str, ...], value: float | None, at: float, count: int) -> str:
    """A stretch of so many samples; promtool's clock begins at 0."""
    if value is None:
        return f"_x{count - 1}"
    if key[0].endswith(_TIMES):
        return f"{value - at:f}{'+60' if 'last_success' in key[0] else '+0'}x{count - 1}"
    return f"{value:f}x{count - 1}"

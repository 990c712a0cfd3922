"""The rules in examples use metrics that the exporter serves, and lead to runbooks."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.command_line import REPOSITORY
from tests.cli.running_exporter import Samples
from tests.monitoring.alerts import firing

RULES = REPOSITORY / "examples" / "alerts.yaml"
DASHBOARD = REPOSITORY / "examples" / "dashboard.json"
METRIC = re.compile(r"\btieredctl_[a-z_]+")


def served() -> set[str]:
    """Every metric that docs/monitoring.md lists."""
    return set(METRIC.findall((REPOSITORY / "docs" / "monitoring.md").read_text()))


def rules() -> Iterator[dict[str, str]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


@pytest.mark.integration
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: str(rule["alert"]))
def test_a_rule_uses_metrics_that_are_served(rule: dict[str, str]) -> None:
    assert set(METRIC.findall(rule["expr"])) <= served()


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: str(rule["alert"]))
def test_a_rule_leads_to_a_runbook(rule: dict[str, dict[str, str]]) -> None:
    runbook = rule["annotations"]["runbook"]

    assert runbook.startswith("docs/runbooks/")
    assert (REPOSITORY / runbook).is_file()


_UP, _COVERAGE = ("tieredctl_exporter_up",), ("tieredctl_last_verification_coverage",)
_PART = ("tieredctl_exporter_part_up", "part=store")
_COMPLETE: Samples = {_UP: 1, ("tieredctl_last_verification_complete",): 1}


def _behind(offsets: float, segment: float = 3600) -> Samples:
    """A topic whose newest tiered record is eight hours old, and whose segments are small."""
    of_topic = {
        "lag_seconds": 8.0 * 3600,
        "lag_segment_sizes": 0.01,
        "lag_offsets": offsets,
        "segment_seconds": segment,
    }
    return {_UP: 1.0, **{(f"tieredctl_{name}", "topic=clicks"): value for name, value in of_topic.items()}}


_SCRAPES: dict[str, tuple[list[Samples], set[str]]] = {
    "the first look hangs": ([{_UP: 0}], {"TieredctlExporterDown"}),
    "the store never answered": ([{_UP: 0, _PART: 0}], {"TieredctlExporterDown"}),
    "looks are rare": ([{_UP: 1, ("tieredctl_exporter_last_success_timestamp_seconds", "part=store"): -3600}], set()),
    "a thirtieth each night": ([{**_COMPLETE, _COVERAGE: 1 / 30}], set()),
    "a night that chose few": ([{**_COMPLETE, _COVERAGE: 0.031}, {**_COMPLETE, _COVERAGE: 0.012}], set()),
    "closed by time, records keep coming": ([_behind(10 * number) for number in range(10)], {"TieringBehindInTime"}),
    "closed by time, no record comes": ([_behind(10)], set()),
    "a long segment is still open": ([_behind(10 * number, segment=7 * 86_400) for number in range(10)], set()),
    "hardly any": ([{**_COMPLETE, _COVERAGE: 0.01}], {"TieredVerificationCoverageLow"}),
}


@pytest.mark.integration
@pytest.mark.parametrize(("scrapes", "alerts"), _SCRAPES.values(), ids=_SCRAPES)
def test_what_fires(scrapes: list[Samples], alerts: set[str], tmp_path: Path) -> None:
    assert firing(scrapes, 0, tmp_path) == alerts


def queries() -> list[str]:
    """Those of the dashboard's panels and variables."""
    board = json.loads(DASHBOARD.read_text())
    variables = [one["definition"] for one in board["templating"]["list"] if one["type"] == "query"]
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]] + variables


@pytest.mark.parametrize("query", queries())
def test_the_dashboard_uses_metrics_that_are_served(query: str) -> None:
    used = set(METRIC.findall(query))

    assert used
    assert used <= served()


@pytest.mark.integration
def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    asked = [query.replace("$instance", ".*").replace("$topic", ".*") for query in queries()]
    rules = [
        {"record": f"asked:{number}", "expr": query}
        for number, query in enumerate(asked)
        if not query.startswith("label_values(")
    ]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))

    done = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yaml"], capture_output=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr

"""The rules in examples use metrics that the exporter serves, and lead to runbooks."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_line import REPOSITORY
from tests.cli.running_exporter import Samples
from tests.monitoring.alerts import firing
from tests.shares import divided

RULES = REPOSITORY / "examples" / "alerts.yaml"
DASHBOARD = REPOSITORY / "examples" / "dashboard.json"
METRIC = re.compile(r"\b(?:tieredctl|kafka)_[a-z_]+")


def served() -> set[str]:
    """Every metric that docs/monitoring.md lists: tieredctl's, and Kafka's by a JMX exporter."""
    return set(METRIC.findall((REPOSITORY / "docs" / "monitoring.md").read_text()))


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


@pytest.mark.integration
def test_promtool_takes_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_rule_uses_metrics_that_are_served_and_leads_to_a_runbook() -> None:
    for rule in rules():
        runbook = rule["annotations"]["runbook"]
        assert set(METRIC.findall(rule["expr"])) <= served(), rule["alert"]
        assert runbook.startswith("docs/runbooks/"), rule["alert"]
        assert (REPOSITORY / runbook).is_file(), rule["alert"]


_UP, _COVERAGE = ("tieredctl_exporter_up",), ("tieredctl_last_verification_coverage",)
_PART = ("tieredctl_exporter_part_up", "part=store")
_FETCH_THROTTLE = ("kafka_server_remotelogmanager_remote_fetch_throttle_time_avg",)
_COMPLETE: Samples = {_UP: 1, ("tieredctl_last_verification_complete",): 1}


def _behind(offsets: float, segment: float = 3600, intended: float = 0) -> Samples:
    """A topic whose newest tiered record is eight hours old, and whose segments are small."""
    lag = {"lag_seconds": 8.0 * 3600, "lag_segment_sizes": 0.01, "lag_offsets": offsets, "segment_seconds": segment}
    lag["intended_lag_seconds"] = intended
    return {_UP: 1.0, **{(f"tieredctl_{name}", "topic=clicks"): value for name, value in lag.items()}}


def _of_brokers(errors: float = 0, size: float = 0) -> Samples:
    """A topic of a GB by its metadata, as its leader sees it."""
    seen = {"remotefetcherrors_total": errors, "remotelogsizebytes": size}
    brokers: Samples = {(f"kafka_server_brokertopicmetrics_{name}", "topic=clicks"): one for name, one in seen.items()}
    return {_UP: 1.0, ("tieredctl_remote_bytes", "topic=clicks"): 1e9, **brokers}


_SCRAPES: dict[str, tuple[list[Samples], set[str]]] = {
    "the first look hangs": ([{_UP: 0}], {"TieredctlExporterDown"}),
    "the store never answered": ([{_UP: 0, _PART: 0}], {"TieredctlExporterDown"}),
    "looks are rare": ([{_UP: 1, ("tieredctl_exporter_last_success_timestamp_seconds", "part=store"): -3600}], set()),
    "a thirtieth each night": ([{**_COMPLETE, _COVERAGE: 1 / 30}], set()),
    "a night that chose few": ([{**_COMPLETE, _COVERAGE: 0.031}, {**_COMPLETE, _COVERAGE: 0.012}], set()),
    "closed by time, records keep coming": ([_behind(10 * number) for number in range(10)], {"TieringBehindInTime"}),
    "closed by time, no record comes": ([_behind(10)], set()),
    "a long segment is still open": ([_behind(10 * number, segment=7 * 86_400) for number in range(10)], set()),
    "as late as it should be": ([_behind(10 * number, intended=86_400) for number in range(10)], set()),
    "brokers fail to read": ([_of_brokers(errors=10 * number) for number in range(15)], {"TieredReadsFail"}),
    "a quota holds reads back": ([{_UP: 1, _FETCH_THROTTLE: 5_000}], {"TieredReadsThrottled"}),
    "a quota holds hardly any reads back": ([{_UP: 1, _FETCH_THROTTLE: 500}], set()),
    "brokers count twice": ([_of_brokers(size=2e9)], {"TieredSizesDiffer"}),
    "brokers count as the metadata does": ([_of_brokers(size=1.1e9)], set()),
    "hardly any": ([{**_COMPLETE, _COVERAGE: 0.01}], {"TieredVerificationCoverageLow"}),
}


@pytest.mark.integration
def test_what_fires(tmp_path: Path) -> None:
    for case in {"closed by time, records keep coming", *divided([*_SCRAPES])}:
        scrapes, alerts = _SCRAPES[case]
        folder = tmp_path / case
        folder.mkdir()
        assert firing(scrapes, 0, folder) == alerts, case


def queries() -> list[str]:
    """Those of the dashboard's panels and variables."""
    board = json.loads(DASHBOARD.read_text())
    variables = [one["definition"] for one in board["templating"]["list"] if one["type"] == "query"]
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]] + variables


def test_the_dashboard_uses_metrics_that_are_served() -> None:
    for query in queries():
        used = set(METRIC.findall(query))
        assert used, query
        assert used <= served(), query


@pytest.mark.integration
def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    asked = [query.replace("$instance", ".*").replace("$topic", ".*") for query in queries()]
    expressions = [query for query in asked if not query.startswith("label_values(")]
    rules = [{"record": f"asked:{number}", "expr": query} for number, query in enumerate(expressions)]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))

    done = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yaml"], capture_output=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_jmx_exporters_rules_make_the_names_that_the_page_lists() -> None:
    """By the names of Kafka's beans as it matches them; sums over topics, which would count twice, match none."""
    made = yaml.safe_load((REPOSITORY / "examples" / "kafka-jmx.yaml").read_text())["rules"]

    def name_of(bean: str) -> str | None:
        for rule in made:
            if found := re.fullmatch(rule["pattern"], bean):
                return str(found.expand(rule["name"].replace("$", "\\"))).lower()
        return None

    topic = "kafka.server<type=BrokerTopicMetrics, name={}, topic=orders><>{}".format
    counters = ("RemoteFetchErrors", "RemoteFetchRequests", "RemoteCopyErrors", "RemoteCopyRequests", "RemoteCopyBytes")
    gauges = ("RemoteCopyLagBytes", "RemoteCopyLagSegments", "RemoteLogSizeBytes")
    beans = [topic(f"{one}PerSec", "Count") for one in counters] + [topic(one, "Value") for one in gauges]
    beans.append("kafka.log.remote<type=RemoteStorageThreadPool, name=RemoteLogReaderAvgIdlePercent><>Value")
    beans += [f"kafka.server<type=RLM{kind}><>byte-rate" for kind in ("Fetch", "Copy")]
    throttle = "kafka.server<type=RemoteLogManager><>remote-{}-throttle-time-{}".format
    beans += [throttle(kind, figure) for kind in ("fetch", "copy") for figure in ("avg", "max")]

    assert {name_of(bean) for bean in beans} == {one for one in served() if one.startswith("kafka_")}
    assert name_of(topic("BytesInPerSec", "Count")) is None
    assert name_of("kafka.server<type=BrokerTopicMetrics, name=RemoteCopyErrorsPerSec><>Count") is None

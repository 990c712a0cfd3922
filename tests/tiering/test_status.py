"""`topic list` and `topic status` on real brokers, against what was done to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.rigs.driven_brokers import DrivenBroker

pytestmark = pytest.mark.integration

TIERED = ["clicks.eu-west_1", "ledger", "orders", "payments"]


def topic(driven: DrivenBroker, *words: str) -> Outcome:
    return this_process("topic", *words, "--bootstrap-server", driven.broker.bootstrap_server, "-o", "json")


def log_bytes(driven: DrivenBroker, name: str) -> tuple[int, int]:
    """How many logs of a topic are in the remote store, and their bytes."""
    logs = list(Path(driven.broker.remote_dir).glob(f"{name}-[0-9]*/*.log"))
    return len(logs), sum(log.stat().st_size for log in logs)


def items(outcome: Outcome) -> dict[str, dict[str, Any]]:
    return {item["topic"]: item for item in outcome.document()["items"]}


def test_the_tiered_topics_are_listed_with_what_the_store_has_of_them(driven: DrivenBroker) -> None:
    outcome = topic(driven, "list")
    listed = items(outcome)
    assert outcome.exit_code == 0
    assert sorted(listed) == TIERED
    assert {name: (row["remoteSegments"], row["remoteBytes"]) for name, row in listed.items()} == {
        name: log_bytes(driven, name) for name in TIERED
    }
    assert {row["tiering"] for row in listed.values()} == {"on"}
    # All topics are listed on request.
    listed = items(topic(driven, "list", "--all"))
    assert listed["untiered"]["tiering"] == "off"
    assert listed["untiered"]["localBytes"] > 0


def test_a_topics_status_tells_what_is_tiered_where_settings_come_from_and_which_nodes_are_able(
    driven: DrivenBroker,
) -> None:
    # A topics partitions tell what is tiered and what is not.
    outcome = topic(driven, "status", "ledger")
    (row,) = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert row["notTiered"] == row["latest"] - (row["latestTiered"] + 1) > 0
    assert 0 < row["notTieredBytes"] <= row["localBytes"]
    assert row["lagMs"] > 0
    assert row["unfinished"] == 0
    # A topic that is tiered whole does not lag.
    rows = topic(driven, "status", "orders").document()["items"]
    assert [(row["notTiered"], row["lagMs"]) for row in rows] == [(0, 0)] * 3
    # Settings tell where each comes from.
    settings = topic(driven, "status", "orders").document()["summary"]["settings"]
    assert settings["remote.storage.enable"] == {"value": "true", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert settings["cleanup.policy"] == {"value": "delete", "source": "DEFAULT_CONFIG"}
    # All nodes are able to tier.
    summary = topic(driven, "status", "orders").document()["summary"]
    assert (summary["brokersUnable"], summary["controllersUnable"]) == ([], [])
    # A topic that is not there is a mistake of usage.
    outcome = topic(driven, "status", "no-such-topic")
    assert outcome.exit_code == 2
    assert "Traceback" not in outcome.err

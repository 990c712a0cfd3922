"""`estimate cost` and `estimate metadata` on real brokers, against what is in their remote store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import own_process
from tests.rigs.driven_brokers import DrivenBroker

pytestmark = pytest.mark.integration

PRICE = 1 << 20
"""Of a GiB a month, so that a KiB costs one."""


def document(driven: DrivenBroker, *words: str, **variables: str) -> dict[str, Any]:
    where = ("--bootstrap-server", driven.broker.bootstrap_server, "-o", "json")
    outcome = own_process("estimate", *words, *where, **variables)
    assert outcome.exit_code == 0, outcome.err
    return outcome.document()


def stored_logs(driven: DrivenBroker, topic: str) -> list[Path]:
    return list(driven.broker.remote_dir.glob(f"{topic}-[0-9]*/*.log"))


def test_a_topic_costs_what_the_store_holds_of_it(driven: DrivenBroker, tmp_path: Path) -> None:
    store, config = f"file:{driven.broker.remote_dir}", tmp_path / "config.yaml"
    config.write_text(f"prices:\n- store: {store}\n  perGiBMonth: {PRICE}\n  currency: EUR\n")

    found = document(driven, "cost", "--store", store, "--layout", "local", TIEREDCTL_CONFIG=str(config))

    rows = {row["topic"]: row for row in found["items"]}
    logs = stored_logs(driven, "orders")
    assert rows["orders"]["segments"] == len(logs)
    assert rows["orders"]["bytes"] == sum(log.stat().st_size for log in logs)
    assert rows["orders"]["storageCost"] == round(rows["orders"]["bytes"] / 1024, 2)
    assert found["summary"]["currency"] == "EUR"


def test_the_broker_keeps_as_many_segments_as_the_store_has(driven: DrivenBroker) -> None:
    (row,) = document(driven, "metadata")["items"]

    assert row["segments"] == len(stored_logs(driven, "*"))

"""`status` on a real broker: it agrees with the commands that its lines name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import own_process
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.page_rows import rows_of

pytestmark = pytest.mark.integration


def test_a_live_cluster_is_shown_as_its_own_commands_show_it(driven: DrivenBroker, tmp_path: Path) -> None:
    server = driven.broker.bootstrap_server
    config = tmp_path / "config.yaml"
    config.write_text(
        "contexts:\n"
        f'  live: {{bootstrapServer: "{server}", store: "file:{driven.broker.remote_dir}", layout: local}}\n'
        '  down: {bootstrapServer: "127.0.0.1:1"}\n'
        "currentContext: live\n"
    )
    variables = {"TIEREDCTL_CONFIG": str(config)}

    page = tmp_path / "page.html"

    outcome = own_process("status", "-o", "json", "--report", page, **variables)
    assert outcome.out, outcome.err
    shown = outcome.document()["summary"]
    listed = own_process("topic", "list", "-o", "json", **variables).document()["summary"]
    lag = own_process("topic", "status", "ledger", "-o", "json", **variables).document()["summary"]
    found = own_process("doctor", "-o", "json", "--bootstrap-server", server).document()["summary"]
    all_of_them = own_process("status", "--all-contexts", "-o", "json", **variables)

    assert shown["tiered"]["topics"] == listed["topics"]
    assert (shown["tiered"]["segments"], shown["tiered"]["remoteBytes"]) == (
        listed["remoteSegments"],
        listed["remoteBytes"],
    )
    assert shown["tiered"]["localBytes"] == listed["localBytes"]  # one broker leads all
    assert shown["notTiered"] >= lag["notTiered"] > 0
    assert sum(shown["severities"].values()) == found["findings"]
    assert sum(size for *_, (size, _) in rows_of(page, 2)) == listed["remoteBytes"]
    assert "Upload delay over time" in page.read_text()
    assert shown["stuck"] == {"copies": 0, "deletions": 0}
    assert all_of_them.out, all_of_them.err
    rows = {row["context"]: row for row in all_of_them.document()["items"]}
    assert all_of_them.exit_code == 5
    assert rows["live"]["remoteBytes"] == listed["remoteBytes"]
    assert rows["down"]["remoteBytes"] is None

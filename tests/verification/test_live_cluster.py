"""`verify` against a running broker: what it promises is there, whichever way its metadata is read."""

from __future__ import annotations

import json

import pytest

from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.cli.main import run


@pytest.mark.parametrize("level", ["listing", "headers", "full"])
@pytest.mark.parametrize("source", ["--bootstrap-server", "--log-dir"])
def test_every_finished_segment_of_a_running_broker_is_sound(
    driven: DrivenBroker, source: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = driven.broker
    where = broker.bootstrap_server if source == "--bootstrap-server" else str(broker.log_dir)

    store = ["--store", f"file:{broker.remote_dir}", "--layout", "local"]
    code = run(["verify", source, where, *store, "--level", level, "--older-than", "1d", "-o", "json"])

    document = json.loads(capsys.readouterr().out)
    assert document["items"] == []
    assert code == 0
    assert document["summary"]["segments"] == driven.cluster.segments_by_state["COPY_SEGMENT_FINISHED"]
    assert document["summary"]["complete"] is True

"""The command line on a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from tests.cli.command_line import Outcome
from tests.tiering.model_cluster import CLUSTER_ID, NOW_MS, TOPIC, ModelCluster
from tieredctl.cli.commands import topic_enable
from tieredctl.cli.main import run
from tieredctl.ops.tiering import watching
from tieredctl.wiring.places import ClusterPlace, MetadataPlace

SURE = ("--apply", "--yes", "--cluster-id", CLUSTER_ID)

TopicCommand = Callable[..., Outcome]
"""`topic_command(cluster, "enable", "--apply")` and so on."""


@pytest.fixture
def topic_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> TopicCommand:
    """Runs `topic enable` or `topic disable` of the topic there."""

    def run_on(cluster: ModelCluster, verb: str, *words: Any) -> Outcome:
        monkeypatch.setattr(ClusterPlace, "open", lambda _: nullcontext(cluster))
        monkeypatch.setattr(MetadataPlace, "open_source", lambda _: cluster.source())
        monkeypatch.setattr(topic_enable, "clock_ms", lambda: NOW_MS)
        monkeypatch.setattr(watching, "_SECONDS_BETWEEN_LOOKS", 0)
        code = run(["topic", verb, TOPIC, "--bootstrap-server", "model:9092", "-o", "json", *map(str, words)])
        return Outcome(code, *capsys.readouterr())

    return run_on


@pytest.fixture
def applied(topic_command: TopicCommand) -> TopicCommand:
    """The same with --apply, and confirmed."""
    return lambda cluster, verb, *words: topic_command(cluster, verb, *SURE, *words)

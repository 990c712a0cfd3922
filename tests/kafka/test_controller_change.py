"""Settings are changed by the controller: what becomes of a change, and of its plan, when that dies meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.rigs.controller_quorum import Quorum, controller_quorum
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import own_topic
from tests.rigs.topic_commands import TopicCommands
from tieredctl.kafka.live_cluster import LiveCluster

pytestmark = pytest.mark.integration

CLEAN, FAILED = 0, 1


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with controller_quorum(jars_of("4.3.1")) as made:
        yield made


def test_a_change_is_made_by_the_next_controller_or_by_another_run(
    quorum: Quorum, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tieredctl, first = TopicCommands(quorum.broker, capfd), quorum.active_controller()
    alter = LiveCluster.alter_topic_configs

    def with_the_controller_dead(cluster: LiveCluster, *change: Any, **how: Any) -> None:
        quorum.controllers[first].kill()
        alter(cluster, *change, **how)

    with own_topic(quorum.broker) as topic:
        plan = tieredctl.plan("enable", topic.name)
        monkeypatch.setattr(LiveCluster, "alter_topic_configs", with_the_controller_dead)
        interrupted = tieredctl.apply("enable", topic.name, "--no-wait")
        monkeypatch.undo()
        again = tieredctl.apply("enable", topic.name, "--no-wait")

        assert plan.document()["summary"]["changes"] == {"remote.storage.enable": "true"}
        assert interrupted.exit_code in (CLEAN, FAILED), interrupted
        assert (interrupted.exit_code == CLEAN) or "did not answer within the request timeout" in interrupted.err
        assert again.exit_code == CLEAN, again
        topic.await_setting("remote.storage.enable", "true")
        assert quorum.active_controller() != first
